"""RUN lines: what they mean and how mistakes in them are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.diagnostics import Source
from hloopt.golden.run_line import Command, GoldenError, Substitutions, parse_run_lines


def commands(text: str) -> list[list[Command]]:
    """The pipelines of a test's RUN lines."""
    run_lines = parse_run_lines(Source("test.hlo", text))
    return [list(pipeline) for run_line in run_lines for pipeline in run_line.pipelines]


def test_a_pipe_connects_commands() -> None:
    assert commands("// RUN: hloopt opt %s -p x | filecheck %s\n") == [
        [Command(("hloopt", "opt", "%s", "-p", "x")), Command(("filecheck", "%s"))]
    ]


def test_double_ampersand_and_several_run_lines_make_several_pipelines() -> None:
    text = "// RUN: hloopt a && hloopt b\nHloModule m\n  //RUN: hloopt c\n"
    assert commands(text) == [
        [Command(("hloopt", "a"))],
        [Command(("hloopt", "b"))],
        [Command(("hloopt", "c"))],
    ]


def test_a_backslash_continues_a_run_line() -> None:
    text = "// RUN: hloopt opt %s \\\n// RUN:   --passes dce \\\r\n// RUN: | filecheck %s\r\n"
    [run_line] = parse_run_lines(Source("test.hlo", text))
    assert run_line.text == "hloopt opt %s --passes dce | filecheck %s"
    assert run_line.span.location == (1, 9)


def test_quoted_words_hold_spaces_and_operators() -> None:
    text = """// RUN: hloopt opt --passes "fixpoint(cse){max_iterations=2}" '|' a\\ b x"y z"'>'"""
    [[command]] = commands(text)
    assert command.words[2:] == (
        "--passes",
        "fixpoint(cse){max_iterations=2}",
        "|",
        "a b",
        "xy z>",
    )


def test_redirections_are_not_words() -> None:
    [[command]] = commands("// RUN: not hloopt <in >%t 2>%t.err 25")
    assert command == Command(
        ("hloopt", "25"), must_fail=True, stdin="in", stdout="%t", stderr="%t.err"
    )


def test_stderr_can_join_stdout() -> None:
    [[command, _]] = commands("// RUN: hloopt verify %s 2>&1 | filecheck %s")
    assert command == Command(("hloopt", "verify", "%s"), merge_stderr=True)


def test_a_command_prints_as_a_shell_reads_it() -> None:
    [[command]] = commands("// RUN: hloopt --passes 'a b' < 'x y' > z 2>&1")
    assert str(command) == "hloopt --passes 'a b' < 'x y' > z 2>&1"


def test_substitutions_hold_in_every_word_and_only_once() -> None:
    substitutions = Substitutions(Path("/my tests/%t.hlo"), Path("/tmp/x.tmp"))
    [[command]] = commands("// RUN: hloopt %s %S/in.hlo %%s %p.1 > %t.out")
    assert command.substituted(substitutions) == Command(
        ("hloopt", "/my tests/%t.hlo", "/my tests/in.hlo", "%s", "%p.1"), stdout="/tmp/x.tmp.out"
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("HloModule m\n", 1, "no RUN line"),
        ("\n// RUN: hloopt opt 'x\n", 2, "unbalanced quote in RUN line: 'x"),
        ("// RUN: hloopt opt || true\n", 1, r"RUN lines have no '\|\|'"),
        ("// RUN: hloopt opt; true\n", 1, "RUN lines have no ';'"),
        ("// RUN: hloopt >> x\n", 1, "RUN lines have no '>>'"),
        ("// RUN: hloopt opt |\n", 1, "a command is missing"),
        ("// RUN: not | filecheck\n", 1, "a command is missing"),
        ("// RUN:\n", 1, "a command is missing"),
        ("// RUN: hloopt > | filecheck\n", 1, "'>' needs a file name"),
        ("// RUN: hloopt <\n", 1, "'<' needs a file name"),
        ("HloModule m\n// RUN: hloopt \\\n", 2, "no RUN line follows"),
    ],
)
def test_mistakes_point_at_the_run_line(text: str, line: int, message: str) -> None:
    with pytest.raises(GoldenError, match=message) as caught:
        commands(text)
    assert caught.value.location is not None
    assert caught.value.location[0] == line
