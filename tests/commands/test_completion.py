"""Shells complete command lines: the scripts, and the answers to them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from tests.commands.test_conventions import COMMANDS

from hloopt.checks.lint.registry import all_rules
from hloopt.cli import COMMANDS as NAMES
from hloopt.cli import cli, main
from hloopt.commands.shared import completion
from hloopt.commands.shared.shells import answer
from hloopt.pass_framework.registry import PASSES
from hloopt.targets import target_names

FREE_TEXT = {
    *("80GiB", "RxP", "AMOUNT", "SIZE", "TIME", "5%", "TEXT", "%NAME", "NAME", "NAME,…"),
    *("NAME=VALUE", "NAME=VALUE,…", "NAME=SHARE,…", "NAME[=true|false]", "RULE.NAME=VALUE"),
    *("OPCODE,…|all", "FILE.npz|KEY=FILE.npy", "COMMAND", "REGEX", "EXPECTATION"),
    *("%NAME|COMPUTATION…", "OP_NAME", "I/N", "PASS", "%NAME|OP_NAME", "SELECTOR"),
    "[%NAME]",
    *("AXIS=SIZE,…", "%NAME=SHARDING"),
    "FLAGS FLAGS",
    *("ray://ADDRESS|dask://ADDRESS", "xla_NAME=VALUE"),
}
"""The metavars of options whose values no list has."""


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Ask:
    return Ask(monkeypatch, capsys)


class Ask:
    """A script that asks within this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.environment = monkeypatch
        self.capsys = capsys

    def __call__(self, words: str, position: object, shell: str = "bash") -> str:
        self.environment.setenv("COMP_WORDS", words)
        self.environment.setenv("COMP_CWORD", str(position))
        self.exit_code = answer(cli, f"{shell}_complete")
        captured = self.capsys.readouterr()
        assert captured.err == ""
        return captured.out

    def last(self, line: str) -> list[str]:
        """The answers for the last word of a line."""
        words = line.split(" ")
        return self("\n".join(words), len(words) - 1).split()


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("hloopt fm", ["plain,fmt"]),
        ("hloopt analyze ov", ["plain,overlap"]),
        ("hloopt opt --pas", ["plain,--passes"]),
        ("hloopt analyze loops --f", ["plain,--format"]),
        ("hloopt opt --passes dc", ["plain,dce"]),
        ("hloopt opt --passes = dc", ["plain,dce"]),
        ("hloopt opt --passes dce,tuple", ["plain,dce,tuple-simplifier"]),
        ("hloopt opt --passes fixpoint(dce,simplify-s", ["plain,fixpoint(dce,simplify-sorts"]),
        ('hloopt opt --passes "cse,dc', ["plain,cse,dce"]),
        ("hloopt opt --passes dce{", []),
        ("hloopt opt --passes nothing-begins-so", []),
        ("hloopt opt --print-after dc", ["plain,dce"]),
        ("hloopt opt --remarks applied,m", ["plain,applied,missed"]),
        ("hloopt passes tuple", ["plain,tuple-simplifier"]),
        ("hloopt passes algebraic", ["plain,algebraic-simplifier"]),
        ("hloopt opt -p simp", ["file,simp", "plain,simplify"]),
        ("hloopt pipelines simp", ["file,simp", "plain,simplify"]),
        ("hloopt opt -p ./x", ["file,./x"]),
        ("hloopt cost --target tpu_v5p", ["file,tpu_v5p", "plain,tpu_v5p"]),
        ("hloopt targets b2", ["file,b2", "plain,b200"]),
        ("hloopt lint --select HLL10,hll101", ["plain,HLL10,HLL101"]),
        ("hloopt lint --ignore HLL101,HLL101", []),
        ("hloopt lint --ignore A", ["plain,ALL"]),
        ("hloopt explain hlo601", ["plain,HLO601"]),
        ("hloopt explain HLL003", ["plain,HLL003"]),
        ("hloopt lint --format git", ["plain,github", "plain,gitlab"]),
        ("hloopt diff a b --ignore names,me", ["plain,names,metadata"]),
        ("hloopt completion z", ["plain,zsh"]),
        ("hloopt memory st", ["file,st"]),
        ("hloopt diff a.hlo b", ["file,b"]),
        ("hloopt opt a.hlo -o o", ["file,o"]),
        ("hloopt opt a.hlo --dump-dir d", ["dir,d"]),
        ("hloopt optt zz", []),
        ("hloopt opt --unknown a", ["file,a"]),
        ("hloopt opt --html= --passes dc", ["plain,dce"]),
    ],
)
def test_the_last_word_of_a_line_is_completed(ask: Ask, line: str, found: list[str]) -> None:
    assert ask.last(line) == found


def test_a_list_has_all_names(ask: Ask) -> None:
    assert {f"plain,{name}" for name in NAMES} == set(ask.last("hloopt "))
    assert {f"plain,{name}" for name in PASSES} <= set(ask.last("hloopt opt --passes "))
    assert {f"plain,{name}" for name in target_names()} < set(ask.last("hloopt cost --target "))
    assert {f"plain,{code}" for code in all_rules()} < set(ask.last("hloopt lint --select "))


def test_zsh_is_told_what_words_mean_and_gets_whole_words(ask: Ask) -> None:
    assert ask("hloopt fm", 1, "zsh").splitlines() == ["plain", "fmt", NAMES["fmt"]]
    assert ask("hloopt opt --passes=dc", 2, "zsh").splitlines() == ["plain", "--passes=dce", "_"]
    kind, code, title = ask("hloopt explain HLO601", 2, "zsh").splitlines()
    assert (kind, code, title[0] != "_") == ("plain", "HLO601", True)


def test_fish_gives_the_word_and_the_line(ask: Ask) -> None:
    assert ask("hloopt fm", "fm", "fish") == f"plain,fmt\t{NAMES['fmt']}\n"
    assert ask("hloopt opt --passes dce,tup", "dce,tup", "fish") == "plain,dce,tuple-simplifier\n"
    assert ask("hloopt opt --passes=tup", "--passes=tup", "fish") == (
        "plain,--passes=tuple-simplifier\n"
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_what_cannot_be_answered_is_answered_by_silence(
    shell: str, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shell != "fish":
        assert ask("hloopt opt", "x", shell) == ""
        assert ask.exit_code == 1
    monkeypatch.delenv("COMP_WORDS", raising=False)
    assert answer(cli, f"{shell}_complete") == 1
    assert answer(cli, "csh_complete") == 1
    assert answer(cli, shell) == 1


@pytest.mark.parametrize("path", COMMANDS)
def test_what_names_something_is_completed(path: str) -> None:
    command = COMMANDS[path]
    context = click.Context(command)
    for param in command.params:
        is_text = param.type is click.STRING and not getattr(param, "is_flag", False)
        if is_text and param.metavar not in FREE_TEXT and path != "hloopt analyze reachability":
            assert param.shell_complete(context, ""), param.opts
        if param.name in ("passes", "pipelines"):
            assert param.shell_complete(context, "")


def test_kinds_of_remarks_are_those_that_opt_takes(capsys: pytest.CaptureFixture[str]) -> None:
    for kind in completion.REMARK_KINDS:
        assert main(["opt", "missing.hlo", "--passes", "dce", "--remarks", kind]) == 2
        assert "missing.hlo" in capsys.readouterr().err


# -- processes ------------------------------------------------------------------------------------


PROGRAM = """
import json, sys
from hloopt.cli import main
assert main() == 0
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


@pytest.mark.parametrize(
    "line",
    [
        *("hloopt ", "hloopt opt --passes ", "hloopt opt -p ", "hloopt cost --target "),
        *("hloopt lint --select ", "hloopt explain ", "hloopt run --", "hloopt expect --"),
    ],
)
def test_completing_imports_nothing_large(line: str) -> None:
    words = line.split(" ")
    environment = {
        **os.environ,
        **{"_HLOOPT_COMPLETE": "bash_complete", "COMP_WORDS": "\n".join(words)},
        "COMP_CWORD": str(len(words) - 1),
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith(("plain,", "file,"))
    imported = json.loads(done.stderr)
    assert [m for m in imported if m in ("numpy", "ml_dtypes", "yaml", "rich", "subprocess")] == []
    if line == "hloopt ":
        assert [m for m in imported if m.startswith("hloopt.commands.")] == [
            "hloopt.commands.shared",
            "hloopt.commands.shared.common",
            "hloopt.commands.shared.shells",
        ]


@pytest.mark.parametrize(
    ("instruction", "exit_code"), [("", 0), ("bash_complete", 1), ("bash_source", 1), ("x", 1)]
)
def test_a_process_that_is_asked_without_words_says_nothing(
    instruction: str, exit_code: int
) -> None:
    environment = {**os.environ, "_HLOOPT_COMPLETE": instruction}
    command = [sys.executable, "-m", "hloopt", "-h"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == exit_code
    assert done.stderr == ""
    assert (done.stdout != "") == (exit_code == 0)


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    """A folder with `hloopt`, as an installation has it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "hloopt"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m hloopt "$@"\n')
    program.chmod(0o755)
    return folder


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not there")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("hloopt opt --passes dc", ["dce"]),
        ("hloopt opt --passes = dce,tup", ["dce,tuple-simplifier"]),
        ("hloopt lint --target b2", ["b200"]),
        ("hloopt fm", ["fmt"]),
    ],
)
def test_bash_completes_with_the_script(words: str, found: list[str], bin_folder: Path) -> None:
    line = f"""
    eval "$(hloopt completion bash)"
    compopt() {{ :; }}  # works within a completion only
    COMP_WORDS=({words})
    COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
    complete -p hloopt
    _hloopt_completion hloopt
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    environment = {**os.environ, "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "--norc", "-c", line], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    registered, *replies = done.stdout.splitlines()
    assert registered == "complete -o nosort -F _hloopt_completion hloopt"
    assert replies == found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_a_shell_asks_in_its_form(
    shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert f"_HLOOPT_COMPLETE={shell}_complete" in script
    if shell == "fish":
        assert 'string split --max 1 ","' in script
        assert 'string split ","' not in script
    interpreter = shutil.which(shell)
    if interpreter is not None:
        subprocess.run([interpreter, "-n"], input=script, text=True, check=True)


def test_a_shell_without_script_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "csh"]) == 2
    assert "'csh' is not one of 'bash', 'zsh', 'fish'" in capsys.readouterr().err
