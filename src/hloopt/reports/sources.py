"""Lines of the program in reports: as JSON, and what is said of where they are from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hloopt.analysis.source_lines import Basis, SourceLine
from hloopt.ir.sources.stacks import Stack
from hloopt.reports.console.units import tail

NO_SOURCE = "(no source)"
_FEW = 0.01  # tables of pointers to results have none
_ARGUMENT = "(argument) "
_TAKEN = (Basis.CALLEE, Basis.CALLER, Basis.OPERAND, Basis.USER)


def cut_source(label: str, width: int) -> str:
    """The end of the path or name in a label; what it is of stays where there is room."""
    mark, name = label.startswith(_ARGUMENT), label.removeprefix(_ARGUMENT)
    if mark and width > 2 * len(_ARGUMENT):
        return _ARGUMENT + tail(name, width - len(_ARGUMENT))
    return tail(label, width)


class StackTable:
    """The stacks that a report refers to by number, each once."""

    def __init__(self) -> None:
        self.stacks: list[list[dict[str, Any]]] = []
        """Frames as JSON, innermost first."""
        self._numbers: dict[Stack, int] = {}

    def source_to_json(self, line: SourceLine) -> dict[str, Any]:
        """The name of a line in tables, its basis, and the number of its stack."""
        return {
            "source": line.label,
            "source_basis": line.basis.value,
            "stack": None if line.stack is None else self._number(line.stack),
        }

    def _number(self, stack: Stack) -> int:
        number = self._numbers.get(stack)
        if number is None:
            number = self._numbers[stack] = len(self.stacks)
            self.stacks.append([frame._asdict() for frame in stack.frames])
        return number


def source_notes(amounts: Mapping[Basis, int], what: str) -> list[str]:
    """The basis of lines that the metadata does not tell; `amounts` of `what` by basis."""
    total = sum(amounts.values()) or 1
    notes = []
    if taken := sum(amounts.get(basis, 0) for basis in _TAKEN):
        notes.append(
            f"{_share(taken, total)} of the {what} are of instructions without a line of their "
            "own: theirs is that of what they run, of their caller, an operand or a user"
        )
    if missing := amounts.get(Basis.MISSING, 0):
        notes.append(
            f"{_share(missing, total)} of the {what} are of instructions that refer to stack "
            "frames which are not in the module: they stand between its header and its first "
            "computation"
        )
    unknown = amounts.get(Basis.NONE, 0)
    if unknown > _FEW * total:
        notes.append(
            f"{_share(unknown, total)} of the {what} have no line: neither the metadata of their "
            "instructions nor that around them tells one"
        )
    return notes


def _share(part: int, total: int) -> str:
    return f"{part / total:.1%}" if part >= total / 1000 else "less than 0.1%"
