"""Drop attributes: of all instructions at once, of single ones, of the header; and edges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from typing import ClassVar

from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.reduction.edits.edit import Count
from hloopt.reduction.edits.session import EditSession

_HEADER = "header:"
_FRAMES = "stack frames"
_EDGES = "control-predecessors"
_NOTES = (
    *("metadata", "origin", "frontend_attributes", "backend_config", "sharding", "statistics"),
    "parameter_replication",
)
"""Attributes that no opcode needs: the first to go."""


class DropAttributeKinds:
    """Drop an attribute from all instructions that have it."""

    what: ClassVar[Count] = Count("kind of attributes dropped", "kinds of attributes dropped")
    one_by_one: ClassVar[bool] = False

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Names of attributes, those that nothing needs first."""
        counts = Counter(
            name for i in module.instructions() for name in (*i.attributes, *_edges_name(i))
        )
        header = [f"{_HEADER}{name}" for name in module.attributes]
        frames = [_FRAMES] if module.stack_frames else []
        notes = [name for name in _NOTES if name in counts]
        return [*notes, *frames, *header, *(name for name in counts if name not in _NOTES)]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Drop those of these names."""
        module = session.module
        for name in [*module.attributes]:
            if f"{_HEADER}{name}" in parts:
                module.set_attribute(name, None)
        if _FRAMES in parts:
            module.set_stack_frames("")
        for instruction in module.instructions():
            for name in [name for name in instruction.attributes if name in parts]:
                instruction.set_attribute(name, None)
            if _EDGES in parts:
                for predecessor in list(instruction.control_predecessors):
                    instruction.remove_control_predecessor(predecessor)


class DropAttributes:
    """Drop attributes of single instructions."""

    what: ClassVar[Count] = Count("attribute dropped", "attributes dropped")
    one_by_one: ClassVar[bool] = False

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Instructions and names of their attributes."""
        return [
            (instruction.name, name)
            for instruction in module.instructions()
            for name in (*instruction.attributes, *_edges_name(instruction))
        ]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Drop those of these instructions and names."""
        for instruction in session.module.instructions():
            for name in [n for n in instruction.attributes if (instruction.name, n) in parts]:
                instruction.set_attribute(name, None)
            if (instruction.name, _EDGES) in parts:
                for predecessor in list(instruction.control_predecessors):
                    instruction.remove_control_predecessor(predecessor)


def _edges_name(instruction: Instruction) -> tuple[str, ...]:
    return (_EDGES,) if instruction.control_predecessors else ()
