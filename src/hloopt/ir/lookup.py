"""Instructions by name, as `module["dot.3"]` and `computation["dot.3"]` look them up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from hloopt.diagnostics import HloError, did_you_mean

if TYPE_CHECKING:
    from hloopt.ir.instruction import Instruction


class NoSuchName(HloError, KeyError):
    """No instruction has a name, or several have it in the text."""

    def __str__(self) -> str:
        """The message with its hint: a KeyError would show the message in quotes."""
        return f"{self.message}; {self.help}" if self.help else self.message


def find_by_name(
    name: str,
    instructions: Iterable[Instruction],
    read_names: Mapping[Instruction, str],
    place: str,
    computations: Collection[str] = (),
) -> Instruction:
    """The one of `instructions` that a name means: its own, or that in the text it was read from.

    `place` is where they are, in messages. O(instructions). Raises NoSuchName.
    """
    if not isinstance(name, str):
        raise TypeError(f"instructions are looked up by name, not by {type(name).__name__}")
    wanted = name.removeprefix("%")
    found: list[Instruction] = []
    names: list[str] = []
    for instruction in instructions:
        names.append(instruction.name)
        if instruction.name == wanted or read_names.get(instruction) == wanted:
            found.append(instruction)
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(f"%{each.name} in %{each.parent.name}" for each in found)
        raise NoSuchName(
            f"several instructions are called '{wanted}' in the text: {several}",
            help="look it up in its computation: module.computations[…][…]",
        )
    if wanted in computations:
        raise NoSuchName(
            f"'{wanted}' is a computation, not an instruction",
            help=f"module.computations['{wanted}'] has it",
        )
    raise NoSuchName(f"no instruction '{wanted}' in {place}", help=did_you_mean(wanted, names))
