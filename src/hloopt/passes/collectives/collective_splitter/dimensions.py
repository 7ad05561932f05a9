"""Which blocks of its operands an operation needs for a block of its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from hloopt.ir.attributes.typed import constrains_layout, dimensions_of, padding_of, slices_of
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.ir.shapes.shape import Shape

Needed = tuple[int | None, ...]
"""By operand the dimension of which a block is needed; None: the whole operand is."""

PLAIN = frozenset(
    (
        *(Opcode.ALL_REDUCE, Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER, Opcode.ALL_TO_ALL),
        *(Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_BROADCAST),
    )
)
"""Collectives that are not asynchronous."""


def needed(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    """The dimensions of its operands that are cut with a dimension of the result.

    The `k`th of so many equal blocks of the result is what the operation makes of the `k`th blocks
    of these. None where it is not. O(operands + dimensions).
    """
    if not can_be_cut(result_of(instruction), dimension, parts):
        return None
    rule = _RULES.get(instruction.opcode)
    found = None if rule is None else rule(instruction, dimension, parts)
    if found is None:
        return None
    for operand, cut in zip(instruction.operands, found, strict=True):
        if cut is not None and not can_be_cut(operand.shape, cut, parts):
            return None
    return found


def result_of(instruction: Instruction) -> Shape:
    """The shape of the result; of a reduce of several values that of the first."""
    shape = instruction.shape
    return shape.elements[0] if shape.is_tuple and shape.elements else shape


def can_be_cut(shape: Shape, dimension: int, parts: int) -> bool:
    """Whether a dimension of an array has so many equal blocks, each of which is an array."""
    if not shape.is_array or shape.is_dynamic or shape.layout.tiles:
        return False
    size = shape.dimensions[dimension]
    return size >= parts and size % parts == 0


def _each(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    """Operations that do the same to each element, scalars serving all."""
    rank = instruction.shape.rank
    if any(operand.shape.rank not in (0, rank) for operand in instruction.operands):
        return None
    return tuple(dimension if operand.shape.rank else None for operand in instruction.operands)


def _broadcast(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    dimensions = dimensions_of(instruction)
    return (dimensions.index(dimension) if dimension in dimensions else None,)


def _iota(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    counted = int(instruction.attributes["iota_dimension"])
    return None if dimension == counted else ()


def _transpose(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    return (dimensions_of(instruction)[dimension],)


def _reverse(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    return None if dimension in dimensions_of(instruction) else (dimension,)


def _reshape(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    source = instruction.operands[0].shape.dimensions
    cut = _same_blocks(instruction.shape.dimensions, dimension, source, parts)
    return None if cut is None else (cut,)


def _bitcast(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    """A bitcast keeps the order in memory, so that its blocks are those of a reshape there."""
    source, result = instruction.operands[0].shape, instruction.shape
    if source.element_type is not result.element_type or not source.is_array:
        return None
    before, after = _major_first(source), _major_first(result)
    cut = _same_blocks(
        [result.dimensions[d] for d in after],
        after.index(dimension),
        [source.dimensions[d] for d in before],
        parts,
    )
    return None if cut is None else (before[cut],)


def _major_first(shape: Shape) -> list[int]:
    return list(reversed(shape.layout.minor_to_major))


def _same_blocks(
    sizes: Sequence[int], dimension: int, others: Sequence[int], parts: int
) -> int | None:
    """The dimension of a reshaped array whose blocks hold the elements of those of a dimension.

    Both have as many elements before them, so that blocks begin at the same ones.
    """
    before = prod(sizes[:dimension])
    passed = 1
    for other, size in enumerate(others):
        if passed == before and size > 1:
            return other if size % parts == 0 else None
        passed *= size
    return None


def _reduce(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    values = len(instruction.operands) // 2
    reduced = dimensions_of(instruction)
    kept = [d for d in range(instruction.operands[0].shape.rank) if d not in reduced]
    return (*[kept[dimension]] * values, *[None] * values)


def _dot(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    if len(instruction.operands) != 2:  # sparse ones have metadata
        return None
    batch, free = [], []
    for side, operand in zip(("lhs", "rhs"), instruction.operands, strict=True):
        first = parse_ints(instruction.attributes.get(f"{side}_batch_dims", "{}"))
        summed = parse_ints(instruction.attributes.get(f"{side}_contracting_dims", "{}"))
        batch.append(first)
        free.append([d for d in range(operand.shape.rank) if d not in (*first, *summed)])
    if dimension < len(batch[0]):
        return batch[0][dimension], batch[1][dimension]
    dimension -= len(batch[0])
    if dimension < len(free[0]):
        return free[0][dimension], None
    return None, free[1][dimension - len(free[0])]


def _concatenate(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    if dimension in dimensions_of(instruction):
        return None
    return (dimension,) * len(instruction.operands)


def _slice(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    cut = slices_of(instruction)[dimension]
    whole = cut == (0, instruction.operands[0].shape.dimensions[dimension], 1)
    return (dimension,) if whole else None


def _pad(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    return (dimension, None) if padding_of(instruction)[dimension] == (0, 0, 0) else None


def _dynamic_slice(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    source, *indices = instruction.operands
    if source.shape.dimensions[dimension] != instruction.shape.dimensions[dimension]:
        return None
    return (dimension, *[None] * len(indices))


def _collective(instruction: Instruction, dimension: int, parts: int) -> Needed | None:
    """Collectives of one array, cut along a dimension that they leave alone."""
    if len(instruction.operands) != 1 or not instruction.shape.is_array:
        return None
    if constrains_layout(instruction) or dimension in dimensions_of(instruction):
        return None
    return (dimension,)


_Rule = Callable[[Instruction, int, int], Needed | None]
_RULES: dict[Opcode, _Rule] = {
    **dict.fromkeys(ELEMENTWISE_UNARY | ELEMENTWISE_BINARY, _each),
    **dict.fromkeys((Opcode.SELECT, Opcode.CLAMP), _each),
    **dict.fromkeys(PLAIN, _collective),
    Opcode.BITCAST: _bitcast,
    Opcode.BROADCAST: _broadcast,
    Opcode.CONCATENATE: _concatenate,
    Opcode.DOT: _dot,
    Opcode.DYNAMIC_SLICE: _dynamic_slice,
    Opcode.IOTA: _iota,
    Opcode.PAD: _pad,
    Opcode.REDUCE: _reduce,
    Opcode.RESHAPE: _reshape,
    Opcode.REVERSE: _reverse,
    Opcode.SLICE: _slice,
    Opcode.TRANSPOSE: _transpose,
}
