"""Completion in shells: the scripts, and the answers to what the scripts ask.

A script calls `_HLOOPT_COMPLETE=bash_complete hloopt` with the words of the line in `COMP_WORDS`
and `COMP_CWORD`; the protocol and most of the scripts are click's.
"""

from __future__ import annotations

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
)

from hloopt.commands.shared.common import COMPLETION_VARIABLE

PROGRAM = "hloopt"


class _Bash(BashComplete):
    """Bash, which takes `--passes=dce` for three words."""

    source_template = (
        "if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404)); then\n"
        + BashComplete.source_template
        + f"else\n    echo '{PROGRAM}: completion needs bash 4.4 or newer' >&2\nfi\n"
    )

    def source(self) -> str:
        """The script. Click would look at the bash of PATH, which need not be the one that asks."""
        return self.source_template % self.source_vars()

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        words = [
            word
            for before, word in zip(["", *args], args, strict=False)
            if not (word == "=" and before.startswith("--"))
        ]
        return super().get_completions(words, incomplete)


class _Whole(ShellComplete):
    """A shell that takes `--passes=dce` for one word, all of which an answer replaces."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        items = super().get_completions(args, incomplete)
        name, equals, _ = incomplete.partition("=")
        if equals and name.startswith("--"):
            for item in items:
                item.value = f"{name}={item.value}"
        return items


class _Zsh(_Whole, ZshComplete):
    """Zsh."""


class _Fish(_Whole, FishComplete):
    """Fish. Click's script ends a word at its first comma."""

    source_template = FishComplete.source_template.replace(
        'string split ","', 'string split --max 1 ","'
    )


SHELLS: dict[str, type[ShellComplete]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}


def script_of(shell: str) -> str:
    """The script that a shell reads to complete `hloopt`."""
    return SHELLS[shell](click.Command(PROGRAM), {}, PROGRAM, COMPLETION_VARIABLE).source()


def answer(command: click.Command, instruction: str) -> int:
    """Print the words that complete a line; an exit code. Instructions are `bash_complete` …

    Nothing is said of errors: it would stand in the middle of the line that is being typed.
    """
    shell, _, asked = instruction.partition("_")
    if shell not in SHELLS or asked != "complete":
        return 1
    try:
        found = SHELLS[shell](command, {}, PROGRAM, COMPLETION_VARIABLE).complete()
    except Exception:  # an environment that is none of a script's, a line that cannot be split
        return 1
    click.echo(found)
    return 0
