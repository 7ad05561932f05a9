"""What an instruction is, without what it reads and who reads it, at three levels of detail."""

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
    """How much of two instructions has to agree, the most first."""

    CORE = 0
    """Opcode, shape, what the attributes mean, constants and numbers, what is called. Layouts,
    shardings, backend configs, channels and metadata never count: they do not tell what is
    computed."""
    OPEN = 1
    """Without constants, numbers of parameters and tuple elements, shapes of tuples, what is
    called, and positions of operands of what takes any number of them."""
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
"""Opcodes whose operands may become more or fewer; their positions then say little."""


def is_variadic(instruction: Instruction) -> bool:
    return instruction.opcode in _VARIADIC


@dataclass(slots=True)
class Labels:
    """Numbers for instructions of two modules: equal numbers mean equal labels.

    `core` numbers labels in most detail, `values` what instructions compute by these, `classes`
    whole computations. O(instructions + edges).
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
        """A number for all that is written about an instruction but metadata and references."""
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
