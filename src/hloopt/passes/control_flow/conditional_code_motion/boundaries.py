"""Boundaries, which move across the border of a conditional as one, and groups of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from hloopt.ir.instruction import Instruction


class Position(Enum):
    """The place of a boundary: in the branches, or beside the conditional."""

    INSIDE = "inside"
    USER = "user"
    OPERAND = "operand"


class Boundary(NamedTuple):
    """One instruction per branch, or a single one behind the conditional or before it."""

    position: Position
    instructions: tuple[Instruction, ...]

    @property
    def first(self) -> Instruction:
        """The instruction itself, or that of branch 0, which stands for those of all branches."""
        return self.instructions[0]

    def next(self) -> Iterable[Boundary]:
        """The boundaries that the search goes on with.

        One per operand inside and before the conditional, one per user behind it.
        """
        if self.position is Position.INSIDE:
            return map(self.operand, range(len(self.first.operands)))
        others = self.first.users if self.position is Position.USER else self.first.operands
        return (Boundary(self.position, (other,)) for other in others)

    def operand(self, number: int) -> Boundary:
        """The boundary inside that gives an operand of this one."""
        return Boundary(self.position, tuple([i.operands[number] for i in self.instructions]))


@dataclass(slots=True, eq=False)
class Group:
    """Boundaries that move together, and those beside them that do not.

    `moved` is in the order in which they were reached: inside and before the conditional users
    come before their operands, behind it the other way round. `kept` has a boundary twice where
    the search found it to have several dependents.
    """

    position: Position
    moved: list[Boundary] = field(default_factory=list)
    kept: list[Boundary] = field(default_factory=list)
    memory: int = 0
    """The memory that moving takes, in units of 512 bytes."""
    benefit: int = 0

    @property
    def moves_out(self) -> bool:
        return self.position is Position.INSIDE
