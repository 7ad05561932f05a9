"""RUN lines: what they mean and how mistakes in them are reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from hloopt.diagnostics import Source
from hloopt.golden.errors import GoldenError
from hloopt.golden.run_line import Command, parse_run_lines
from hloopt.golden.substitutions import Substitutions


def commands(text: str) -> list[list[Command]]:
    """The pipelines of a test's RUN lines."""
    run_lines = parse_run_lines(Source("test.hlo", text))
    return [list(step.pipeline) for run_line in run_lines for step in run_line.steps]


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
    substitutions = Substitutions(
        Path("/my tests/%t.hlo"), Path("/tmp/x.tmp"), {"GPU": "%s", "s": "v"}
    )
    [[command]] = commands("// RUN: hloopt %s %S/in.hlo %%s %p.1 %T %{GPU}/%{s} > %t.out")
    assert command.substituted(substitutions) == Command(
        (
            *("hloopt", "/my tests/%t.hlo", "/my tests/in.hlo", "%s"),
            *("/my tests.1", "/tmp", "%s/v"),
        ),
        stdout="/tmp/x.tmp.out",
    )


def test_a_parameter_without_a_value_names_the_nearest() -> None:
    substitutions = Substitutions(Path("a"), Path("b"), {"GPU": "h100"})
    with pytest.raises(GoldenError, match=r"%\{GPV\} has no value") as error:
        substitutions.apply("%{GPV}")
    assert error.value.help == "did you mean 'GPU'?"


def test_joints_are_those_of_a_shell() -> None:
    [line] = parse_run_lines(Source("t", "// RUN: a && b || c ; d | e >> f\n"))
    assert [step.joint for step in line.steps] == [";", "&&", "||", ";"]
    assert line.steps[3].pipeline[1] == Command(("e",), stdout="f", appends=True)
    assert str(line.steps[3].pipeline[1]) == "e >> f"


def test_not_not_is_nothing() -> None:
    [[command]] = commands("// RUN: not not hloopt a")
    assert command == Command(("hloopt", "a"))


@pytest.mark.parametrize(
    ("features", "chosen"),
    [((), ["b"]), (("x",), ["a"]), (("x", "y"), ["a", "c"])],
)
def test_parts_of_if_are_chosen_by_features(features: tuple[str, ...], chosen: list[str]) -> None:
    text = "// RUN: %if x %{ a %if y %{ && c %} %} %else %{ b %}\n"
    [line] = parse_run_lines(Source("t", text), frozenset(features))
    assert [step.pipeline[0].words[0] for step in line.steps] == chosen


def test_a_line_of_which_no_part_is_chosen_runs_nothing() -> None:
    [line] = parse_run_lines(Source("t", "// RUN: %if x %{ a %}\n"))
    assert line.steps == ()


def test_ifs_in_each_other_have_a_limit() -> None:
    text = "// RUN: " + "%if true %{ " * 30 + "a" + " %}" * 30
    with pytest.raises(GoldenError, match="more than 20 %if in each other"):
        parse_run_lines(Source("t", text))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("HloModule m\n", 1, "no RUN line"),
        ("\n// RUN: hloopt opt 'x\n", 2, "unbalanced quote in RUN line: 'x"),
        ("// RUN: hloopt opt & true\n", 1, "RUN lines have no '&'"),
        ("// RUN: hloopt ||\n", 1, "a command is missing"),
        ("// RUN: hloopt >>\n", 1, "'>>' needs a file name"),
        ("// RUN: %if a && %{ hloopt %}\n", 1, "a condition has the end"),
        ("// RUN: %if a %{ hloopt\n", 1, "a part of %if has no end"),
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


def test_long_words_take_linear_time() -> None:
    word = "x" * 2_000_000
    [[command]] = commands(f"// RUN: echo {word}\n")
    assert command.words == ("echo", word)
