"""The answers of a predicate: whether a module shows the failure that is looked for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple, Protocol

from hloopt.ir.module import Module


class Verdict(Enum):
    """Whether a module shows the failure."""

    SHOWN = "shown"
    NOT_SHOWN = "not shown"
    UNKNOWN = "cannot tell"


class Outcome(NamedTuple):
    """The answer of a predicate about one module."""

    verdict: Verdict
    signature: str = ""
    """The kind of the failure, without names and numbers: a module with another one shows another
    failure. Empty where the predicate does not know."""
    detail: str = ""
    """The failure in a line, for people."""
    steps: int = 0
    """The steps of the interpreter that it took, rounded down; 0 where none ran."""
    about: tuple[str, ...] = ()
    """The instructions that the failure is about, as far as somebody says so; not compared."""

    @property
    def is_shown(self) -> bool:
        return self.verdict is Verdict.SHOWN


_NAMED = re.compile(r"%([\w.\-]+)")


def named_in(message: str) -> tuple[str, ...]:
    """The names behind `%` in a message."""
    return tuple(dict.fromkeys(name.rstrip(".") for name in _NAMED.findall(message)))


NOT_SHOWN = Outcome(Verdict.NOT_SHOWN)


def unknown(detail: str) -> Outcome:
    """The answer of a predicate that cannot tell, with the reason."""
    return Outcome(Verdict.UNKNOWN, detail=detail)


class Predicate(Protocol):
    """A question about the text of a module. It is pickled: worker processes ask it."""

    @property
    def needs_valid(self) -> bool:
        """Whether it only makes sense for modules that verify."""

    @property
    def starts_processes(self) -> bool:
        """Whether it starts processes of its own, which have to end with it."""

    def __call__(self, text: str, steps: int | None = None, /) -> Outcome:
        """Ask it of a module, which may run for so many steps where it is interpreted.

        Errors of the module are answers, not exceptions.
        """

    def narrowed(self, text: str, outcome: Outcome) -> Predicate:
        """The question about candidates, given the input and its outcome: with less work, or with
        what they may not have beside it."""

    def describe(self) -> str:
        """The failure it looks for, in a clause: "pipeline x fails"."""

    def command(self, path: str) -> str:
        """The command line that shows the failure of the module in a file."""


_WORD = re.compile(r"%?[A-Za-z_][\w.\-]*")
_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?:,\s*-?\d+(?:\.\d+)?)*")
_SHAPES = re.compile(
    r"\b[a-z]+\d*(?:e\d+m\d+\w*)?\[[\d,<=?]*\](?:\{[^}]*\})?(?:,\s*[a-z]\w*\[[\d,<=?]*\](?:\{[^}]*\})?)*"
)
_TRAILS = re.compile(
    r" while looking at %\S+| \(module [^)]*\)| \(and \d+ more problems?\)|/\*.*?\*/"
)
_COMPUTATION = "computation"


def kinds_of(module: Module) -> dict[str, str]:
    """The names of a module, with the opcodes of instructions. O(instructions)."""
    kinds = dict.fromkeys(module.computations, _COMPUTATION)
    return kinds | {i.name: i.opcode.value for i in module.instructions()}


def signature_of(message: str, kinds: Mapping[str, str]) -> str:
    """A message without names, shapes and numbers of a module: its kind.

    A name behind `%` becomes `%`; other words that are names of instructions become their opcodes,
    so that it does not matter whether `add` is one. `kinds` are those of `kinds_of`. O(message).
    """

    def without_name(match: re.Match[str]) -> str:
        word = match[0]
        return "%" if word.startswith("%") else kinds.get(word.rstrip("."), word)

    text = _TRAILS.sub("", message)
    return _NUMBERS.sub("#", _WORD.sub(without_name, _SHAPES.sub("SHAPE", text))).strip()
