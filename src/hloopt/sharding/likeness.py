"""Likeness of an instruction of a partitioned program and one of the program for all devices."""

from __future__ import annotations

from collections.abc import Hashable
from operator import ne
from typing import NamedTuple

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.sources.source_stacks import op_name_of, stack_of
from hloopt.patterns import pattern
from hloopt.sharding.shapes import DeviceShapes, Dimensions

UNLIKE = -9.0
"""The score of instructions that cannot match."""
_KEPT = (
    *("dimensions", "direction", "index", "lhs_contracting_dims", "rhs_contracting_dims"),
    *("lhs_batch_dims", "dim_labels", "custom_call_target", "iota_dimension"),
)
"""Attributes that the partitioner takes over."""
_MOVING = frozenset(
    (
        *(Opcode.SLICE, Opcode.PAD, Opcode.DYNAMIC_SLICE, Opcode.CONCATENATE, Opcode.RESHAPE),
        *(Opcode.TRANSPOSE, Opcode.COPY, Opcode.SELECT, Opcode.BROADCAST, Opcode.REVERSE),
        Opcode.DYNAMIC_UPDATE_SLICE,
    )
)
"""Opcodes of which the partitioner makes many of its own: shapes have to be equal."""
_SUFFIX = pattern(r"(?:\.(?:\d+|clone|remat\d*))+$")
_RANGE = pattern(r"\[(\d+):(\d+)(?::(\d+))?\]")


class _Traits(NamedTuple):
    """The marks of an instruction that are compared with those of many others."""

    kept: tuple[str | None, ...]
    stem: str


class Likeness:
    """Scores pairs by per-device shape, attributes, metadata and name."""

    def __init__(self, shapes: DeviceShapes) -> None:
        self._shapes = shapes
        self._places: dict[Instruction, tuple[str, Hashable] | None] = {}
        self._traits: dict[Instruction, _Traits] = {}

    def place(self, instruction: Instruction) -> tuple[str, Hashable] | None:
        """The op_name and source stack of an instruction; None where it has neither."""
        if instruction not in self._places:
            name, stack = op_name_of(instruction), stack_of(instruction)
            self._places[instruction] = (
                (name, stack and stack.frames) if name or stack is not None else None
            )
        return self._places[instruction]

    def score(self, after: Instruction, before: Instruction) -> float:
        """How alike two instructions of one opcode are, operands left out. O(leaves)."""
        ours, theirs = after.shape.leaves(), before.shape.leaves()
        if len(ours) != len(theirs):
            return UNLIKE
        is_part = True
        for mine, other, part in zip(ours, theirs, self._shapes.leaves(before), strict=True):
            if mine.rank != other.rank or mine.type_name != other.type_name:
                return UNLIKE
            is_part = is_part and mine.dimensions == part
        if not (is_part or after.opcode not in _MOVING) or not _moves_alike(after, before):
            return UNLIKE
        score = 2.0 if is_part else -1.0
        if after.opcode is Opcode.PARAMETER:
            return score + 6.0
        own, others = self._traits_of(after), self._traits_of(before)
        if own.kept != others.kept:
            score -= 3.0 * sum(map(ne, own.kept, others.kept))
        if own.stem == others.stem:
            score += 1.0
        elif own.stem != after.opcode.value:
            score -= 2.0
        return score + self._by_place(after, before)

    def _traits_of(self, instruction: Instruction) -> _Traits:
        found = self._traits.get(instruction)
        if found is None:
            kept = tuple(map(instruction.attributes.get, _KEPT))
            found = self._traits[instruction] = _Traits(kept, stem(instruction.name))
        return found

    def _by_place(self, after: Instruction, before: Instruction) -> float:
        mine, other = self.place(after), self.place(before)
        if mine is None or other is None:
            return 0.0
        return 3.0 if mine[0] == other[0] else -4.0

    def key(self, instruction: Instruction, dimensions: Dimensions) -> Hashable:
        """A key that a value without operands and its counterpart have in common.

        `dimensions` are those on one device.
        """
        opcode = instruction.opcode
        if opcode is Opcode.PARAMETER:
            return opcode, instruction.parameter_number
        if opcode is Opcode.CONSTANT and instruction.shape.is_scalar:
            return opcode, instruction.shape.type_name, instruction.payload
        if opcode is Opcode.CONSTANT:
            return opcode, instruction.shape.type_name, dimensions
        return opcode, instruction.shape.rank

    def without_operands(self, computation: Computation) -> dict[Hashable, list[Instruction]]:
        """The instructions of a program that have no operands, by their keys."""
        found: dict[Hashable, list[Instruction]] = {}
        for instruction in computation.instructions:
            if not instruction.operands:
                dimensions = next(iter(self._shapes.leaves(instruction)), ())
                found.setdefault(self.key(instruction, dimensions), []).append(instruction)
        return found


def stem(name: str) -> str:
    """A name without the numbers that make it unique."""
    return _SUFFIX.sub("", name)


def _moves_alike(after: Instruction, before: Instruction) -> bool:
    """Whether a slice or a pad of a part is what a device does of that of the whole."""
    if after.opcode is Opcode.PAD:
        return after.attributes.get("padding") == before.attributes.get("padding")
    if after.opcode is not Opcode.SLICE:
        return True
    ours, theirs = (_RANGE.findall(i.attributes.get("slice", "")) for i in (after, before))
    sizes = after.operands[0].shape.dimensions, before.operands[0].shape.dimensions
    if not len(ours) == len(theirs) == len(sizes[0]) == len(sizes[1]):
        return False
    return all(
        mine == other or (_is_all(mine, size) and _is_all(other, whole))
        for mine, other, size, whole in zip(ours, theirs, *sizes, strict=True)
    )


def _is_all(bounds: tuple[str, str, str], size: int) -> bool:
    return bounds[0] == "0" and int(bounds[1]) == size and bounds[2] in ("", "1")
