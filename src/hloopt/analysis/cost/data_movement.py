"""Instructions that touch a part of an operand, or only pointers to it."""

from __future__ import annotations

from hloopt.analysis.cost.model import NO_COST, Cost, moving
from hloopt.analysis.cost.sizes import bytes_of_operands, leaf_bytes, table_bytes
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.instruction import Instruction


def slice_cost(instruction: Instruction) -> Cost:
    """Reads what it returns, and the first start index: XLA leaves out the others."""
    size = leaf_bytes(instruction.shape)
    return moving((size, *_first(bytes_of_operands(instruction)[1:])), size)


def update_cost(update: Instruction) -> Cost:
    """In place: reads the update and the first start index, writes as much as the update has."""
    _, *read = bytes_of_operands(update)
    return moving((0, read[0], *_first(tuple(read[1:]))), read[0])


def _first(sizes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(size if number == 0 else 0 for number, size in enumerate(sizes))


def gather_cost(gather: Instruction) -> Cost:
    """Reads the indices, and of the operand as much as it returns."""
    size = leaf_bytes(gather.shape)
    return moving((size, *bytes_of_operands(gather)[1:]), size)


def tuple_cost(instruction: Instruction) -> Cost:
    """Writes a table of pointers; the operands stay where they are."""
    return moving((0,) * len(instruction.operands), table_bytes(instruction.shape))


def outfeed_cost(outfeed: Instruction) -> Cost:
    """Reads all arrays of what it sends."""
    sent, *tokens = outfeed.operands
    return moving((leaf_bytes(sent.shape), *(0 for _ in tokens)), 0)


def transpose_cost(transpose: Instruction) -> Cost:
    """All that is read is written, or nothing where both layouts have the elements in one order."""
    source = transpose.operands[0].shape
    dimensions = dimensions_of(transpose)
    order = tuple(dimensions[d] for d in transpose.shape.layout.minor_to_major)
    if order == source.layout.minor_to_major:
        return NO_COST
    return moving(bytes_of_operands(transpose), leaf_bytes(transpose.shape))
