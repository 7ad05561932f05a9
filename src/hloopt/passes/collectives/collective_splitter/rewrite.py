"""Parts in the place of instructions that work on parts."""

from __future__ import annotations

from collections.abc import Iterator, Set

from hloopt.ir.attributes.typed import slices_of
from hloopt.ir.attributes.values import Slice, format_ints, parse_ints
from hloopt.ir.clone import clone_computation
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.passes.collectives.collective_splitter.fused import Cut, FusedCut
from hloopt.passes.collectives.collective_splitter.region import Member, Region, slices_inside
from hloopt.passes.collectives.shards import with_dimension
from hloopt.passes.rewriting.replace import OF_THE_VALUE, forget_value
from hloopt.passes.rewriting.rules.build import format_slices
from hloopt.passes.rewriting.slice_places import forget_slices


def split_region(region: Region, channel_ids: Iterator[int]) -> None:
    """Replace the members of a region by their parts. O(instructions + parts)."""
    _Rewrite(region, channel_ids).run()


class _Rewrite:
    def __init__(self, region: Region, channel_ids: Iterator[int]) -> None:
        self._region = region
        self._channel_ids = channel_ids
        self._parts: dict[Instruction, list[Instruction]] = {}
        self._sliced: dict[tuple[Instruction, int], list[Instruction]] = {}
        self._placed: dict[Instruction, list[Instruction]] = {}

    def run(self) -> None:
        region, computation = self._region, self._region.computation
        ordered = [i for i in stable_order(computation) if i in region.members]
        for original in ordered:
            self._split(original, region.members[original])
        wholes: dict[Instruction, Instruction] = {}
        inside = region.members.keys()
        for original in ordered:
            outside = [user for user in original.users if user not in inside]
            if outside or original.is_root:
                wholes[original] = self._whole(original)
        computation.splice(self._placed)
        for original in reversed(ordered):
            if original in wholes:
                original.replace_all_uses_with(wholes[original])
            computation.remove(original)

    def _split(self, original: Instruction, member: Member) -> None:
        placed = self._placed.setdefault(original, [])
        inside = {
            number
            for number, dimension in enumerate(member.operands)
            if slices_inside(original) and self._is_outside(original.operands[number], dimension)
        }
        operands = [
            self._blocks(operand, None if number in inside else member.operands[number], placed)
            for number, operand in enumerate(original.operands)
        ]
        parts = []
        for number in range(self._region.parts):
            part = self._region.computation.add_clone(original, [each[number] for each in operands])
            forget_value(part)
            if member.fused is None:
                _shrink(part, member.cut, self._region.parts)
            else:
                part.set_called((_fused_part(member.fused, number, inside),))
                part.set_shape(part.called[0].root.shape)
            forget_slices((part,))
            if number and "channel_id" in part.attributes:
                part.set_attribute("channel_id", str(next(self._channel_ids)))
            parts.append(part)
        self._parts[original] = parts
        placed += parts

    def _is_outside(self, operand: Instruction, dimension: int | None) -> bool:
        """Whether blocks of an operand are to be sliced."""
        member = self._region.members.get(operand)
        return dimension is not None and (member is None or member.cut != dimension)

    def _blocks(
        self, operand: Instruction, dimension: int | None, placed: list[Instruction]
    ) -> list[Instruction]:
        """The parts of an operand along a dimension, or itself for each part."""
        member = self._region.members.get(operand)
        if member is not None and (member.cut == dimension or operand.shape.is_tuple):
            return self._parts[operand]
        if dimension is None:
            return [operand] * self._region.parts
        key = operand, dimension
        if key not in self._sliced:
            self._sliced[key] = [
                _sliced(operand, dimension, self._region.parts, number)
                for number in range(self._region.parts)
            ]
            placed += self._sliced[key]
        return self._sliced[key]

    def _whole(self, original: Instruction) -> Instruction:
        """The value of an instruction, put together from its parts."""
        cut = self._region.members[original].cut
        assert isinstance(cut, int)
        told = ("metadata", *OF_THE_VALUE)
        attributes = {
            name: original.attributes[name] for name in told if name in original.attributes
        }
        attributes["dimensions"] = format_ints((cut,))
        whole = original.parent.add(
            Opcode.CONCATENATE, original.shape, self._parts[original], attributes=attributes
        )
        self._placed[original].append(whole)
        return whole


def _fused_part(inside: FusedCut, number: int, sliced: Set[int]) -> Computation:
    """The fused computation of a part, which slices some of its parameters itself."""
    clone, copies = clone_computation(inside.computation)
    slices: dict[Instruction, list[Instruction]] = {}
    for original, dimension in inside.of.items():
        copy = copies[original]
        if copy.opcode is Opcode.PARAMETER and copy.parameter_number in sliced:
            users = list(copy.users)
            block = _sliced(copy, dimension, inside.parts, number)
            for user in users:
                user.exchange_operand(copy, block)
            first = next(each for each in clone.instructions if each in users)
            slices.setdefault(first, []).append(block)
        else:
            _shrink(copy, dimension, inside.parts)
    clone.splice(slices)
    if clone.root.opcode is Opcode.TUPLE:
        clone.root.set_shape(tuple_shape(value.shape for value in clone.root.operands))
    return clone


def _sliced(value: Instruction, dimension: int, parts: int, number: int) -> Instruction:
    """A new slice of one of so many blocks of a value."""
    shape = part_of(value.shape, dimension, parts)
    size = shape.dimensions[dimension]
    ranges = [Slice(0, each) for each in value.shape.dimensions]
    ranges[dimension] = Slice(number * size, (number + 1) * size)
    attributes = {"slice": format_slices(ranges)}
    return value.parent.add(Opcode.SLICE, shape, [value], attributes=attributes)


def _shrink(part: Instruction, cut: Cut, parts: int) -> None:
    """Let an instruction give a block of what it gave."""
    shape = part.shape
    if shape.is_tuple:
        cuts = cut if isinstance(cut, tuple) else (cut,) * len(shape.elements)
        each = zip(shape.elements, cuts, strict=True)
        part.set_shape(tuple_shape(part_of(element, d, parts) for element, d in each))
        return
    assert isinstance(cut, int)
    part.set_shape(part_of(shape, cut, parts))
    size = part.shape.dimensions[cut]
    if part.opcode is Opcode.SLICE:
        ranges = [*slices_of(part)]
        ranges[cut] = Slice(0, size)
        part.set_attribute("slice", format_slices(ranges))
    elif part.opcode is Opcode.DYNAMIC_SLICE:
        sizes = [*parse_ints(part.attributes["dynamic_slice_sizes"])]
        sizes[cut] = size
        part.set_attribute("dynamic_slice_sizes", format_ints(sizes))


def part_of(shape: Shape, dimension: int, parts: int) -> Shape:
    """The shape of one of so many parts of an array along a dimension."""
    return with_dimension(shape, dimension, shape.dimensions[dimension] // parts)
