"""Labels: instructions by themselves, without operands and users, at three levels of detail."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from hloopt.analysis.content import Bodies, Content
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode


class Level(IntEnum):
    """Levels of detail of a label, the most detailed first."""

    CORE = 0
    """Opcode, shape, attributes, constants, numbers of parameters, callees. Never layouts,
    shardings, backend configs, channels and metadata: they do not change the value."""
    OPEN = 1
    """CORE without constants, numbers of parameters and tuple elements, shapes of tuples, callees,
    and operand positions of variadic opcodes."""
    LOOSE = 2
    """The opcode, and the numbers of parameters and tuple elements."""


_ANNOTATIONS = frozenset(
    (
        *("names", "metadata", "locations", "layout", "sharding", "frontend-attributes"),
        *("backend-config", "channels", "control"),
    )
)
_NOT_WRITTEN = frozenset(("names", "metadata", "channels", "control"))
_VARIADIC = frozenset(
    (
        *(Opcode.TUPLE, Opcode.FUSION, Opcode.CALL, Opcode.CUSTOM_CALL, Opcode.CONCATENATE),
        *(Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.ALL_GATHER, Opcode.ALL_TO_ALL),
        *(Opcode.ALL_GATHER_START, Opcode.REDUCE_SCATTER, Opcode.ASYNC_START, Opcode.OPT_BARRIER),
        *(Opcode.AFTER_ALL, Opcode.SORT, Opcode.REDUCE),
    )
)
"""Opcodes with any number of operands: positions shift when one is added or removed."""


def is_variadic(instruction: Instruction) -> bool:
    return instruction.opcode in _VARIADIC


@dataclass(slots=True)
class Labels:
    """Numbers of labels for the instructions of two modules; equal labels get equal numbers.

    `core` has labels in most detail, `values` value numbers of instructions by these labels,
    `classes` value numbers of whole computations. O(instructions + edges).
    """

    core: dict[Instruction, int]
    values: dict[Instruction, int]
    classes: dict[Computation, int]
    _bodies: Bodies
    _written: Content = field(default_factory=lambda: Content(_NOT_WRITTEN))

    @classmethod
    def of(cls, modules: Iterable[Module]) -> Labels:
        bodies = Bodies(Content(_ANNOTATIONS))
        for module in modules:
            bodies.add(module)
        return cls(bodies.labels, bodies.values, bodies.computations, bodies)

    def at(self, level: Level, instruction: Instruction) -> int:
        """The label of an instruction at a level of detail."""
        if level is Level.CORE:
            return self.core[instruction]
        return self._bodies.number((level, *self._key(level, instruction)))

    def annotations(self, instruction: Instruction) -> int:
        """A number for the shape with layout and all attributes but metadata and channels."""
        key = "annotations", instruction.shape, self._written.attributes(instruction)
        return self._bodies.number(key)

    def _key(self, level: Level, instruction: Instruction) -> tuple[Hashable, ...]:
        opcode = instruction.opcode
        if level is Level.LOOSE:
            number = instruction.payload if opcode is Opcode.PARAMETER else ""
            return opcode, number, instruction.attributes.get("index")
        content, shape = self._bodies.content, instruction.shape
        return (
            opcode,
            None if shape.is_tuple else content.shape(shape),
            () if opcode is Opcode.GET_TUPLE_ELEMENT else content.attributes(instruction),
        )
