"""The instruction that a name of the source text means.

Reading renames clashing names, so a name of the text is not always that of its instruction.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from conformance_lib.errors import RecordError
from hloopt.ir import Computation, Instruction, Module

_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|/\*.*?\*/|//[^\n]*|[{}]', re.S)
_DEFINITION = re.compile(r"(?:^|(?<=\s))%?([A-Za-z_][\w.\-]*)\s+=(?!=)")
_SUFFIX = re.compile(r"\.\d+$")


@dataclass(frozen=True, slots=True)
class Definition:
    """An instruction as it was right after reading."""

    instruction: Instruction
    name: str
    """Its name after reading, unique in the module."""
    computation: str
    is_in_entry: bool


class SourceNames:
    """The definitions of a freshly read module by their names in the text. O(text)."""

    def __init__(self, module: Module) -> None:
        self._definitions: dict[str, list[Definition]] = {}
        self._all = {
            computation.name: {instruction.name for instruction in computation.instructions}
            for computation in module.computations.values()
        }
        for computation in module.computations.values():
            for name, instruction in _named_instructions(computation):
                self._definitions.setdefault(name, []).append(
                    Definition(
                        instruction, instruction.name, computation.name, computation.is_entry
                    )
                )

    def all(self) -> dict[str, set[str]]:
        """The names of all instructions right after reading, by their computation."""
        return self._all

    def __contains__(self, name: str) -> bool:
        return name in self._definitions

    def find(self, name: str, computation: str | None = None) -> Definition | None:
        """The definition meant by `name`: the only one, or the one in the entry (or in the
        computation that had the name `computation`). None where the text has no such name.

        Raises RecordError for a name defined several times, but not there.
        """
        found = self._definitions.get(name, [])
        if computation is not None:
            found = [definition for definition in found if definition.computation == computation]
        if len(found) > 1:
            found = [definition for definition in found if definition.is_in_entry]
            if len(found) != 1:
                raise RecordError(f"'{name}' is defined several times, and not once in ENTRY")
        return found[0] if found else None


def _named_instructions(computation: Computation) -> list[tuple[str, Instruction]]:
    names = _defined_names(computation)
    if names is None:
        return [(instruction.name, instruction) for instruction in computation.instructions]
    result: list[tuple[str, Instruction]] = []
    remaining = iter(names)
    name = next(remaining, None)
    for instruction in computation.instructions:
        if name is None:
            break
        if _base(name) == _base(instruction.name):  # else it stands in an operand, without name
            result.append((name, instruction))
            name = next(remaining, None)
    assert name is None, f"the text of %{computation.name} defines %{name}, the module does not"
    return result


def _base(name: str) -> str:
    return _SUFFIX.sub("", name)


def _defined_names(computation: Computation) -> list[str] | None:
    """Names on the left of `=` in a computation's text, in order; None where it has no text."""
    source, extent = computation.module.source, computation.source_range
    if source is None or extent is None:
        return None
    start, end = extent
    if computation.signature:
        signature = computation.signature.strip()
        start = source.text.index(signature, start, end) + len(signature)
    body = _outermost(source.text[start:end])
    return [match[1] for match in _DEFINITION.finditer(body)]


def _outermost(text: str) -> str:
    """The text in the outer braces of `text`, without inner braces, strings and comments."""
    kept: list[str] = []
    depth = position = 0
    for piece in _PIECE.finditer(text):
        if depth == 1:
            kept.append(text[position : piece.start()])
        depth += {"{": 1, "}": -1}.get(piece[0], 0)
        position = piece.end()
        if depth == 0 and piece[0] == "}":
            break
    return " ".join(kept)
