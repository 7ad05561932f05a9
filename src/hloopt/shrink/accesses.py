"""Relations of dimensions by operations on parts of arrays: slices, pads, gathers, scatters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from hloopt.ir.attributes.typed import padding_of, slices_of
from hloopt.ir.attributes.values import parse_int
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.shrink.counters import is_index
from hloopt.shrink.factors import Factor, Rest, keep
from hloopt.shrink.flow import Dimensions, Flow, Leaves, ints, relation


@relation(Opcode.CONCATENATE)
def _concatenate(flow: Flow, instruction: Instruction) -> Leaves:
    (result,) = flow.fresh(instruction.shape)
    parts = [flow.of(operand) for operand in instruction.operands]
    (dimension,) = ints(instruction, "dimensions")
    for part in parts:
        for d, (a, b) in enumerate(zip(part, result, strict=True)):
            if d != dimension:
                flow.same(a, b, instruction)
    pieces = sorted((part[dimension] for part in parts), key=lambda factor: factor.size)
    whole, sizes = result[dimension], [piece.size for piece in pieces]
    if _leaves_a_rest(whole.size, sizes[-1], sizes):
        reason = f"%{instruction.name}: concatenate of these sizes"
        flow.rests.append(Rest(whole, pieces[-1], sum(sizes[:-1]), reason))
        keep(pieces[:-1], reason)
    else:
        flow.share_blocks([*pieces, whole], (), instruction)
    return [result]


@relation(Opcode.SLICE)
def _slice(flow: Flow, instruction: Instruction) -> Leaves:
    (operand,) = instruction.operands
    (result,) = flow.fresh(instruction.shape)
    slices = slices_of(instruction)
    for d, (one, source) in enumerate(zip(slices, flow.of(operand), strict=True)):
        if one.stride == 1 and result[d].size == 1 < source.size:
            if flow.facts.of(operand).computed:
                reason = "an element of values that do not depend on the inputs"
                flow.stay([source], instruction, reason)
            flow.points.append((instruction, d))
        elif one.stride == 1:
            _relate_cut(flow, instruction, d, source, result[d], (one.start, one.limit))
        elif source.size == result[d].size * one.stride:
            step = Factor(one.stride, f"%{instruction.name}: the stride of a slice")
            flow.products([source], [result[d], step], instruction)
        else:
            flow.stay([source, result[d]], instruction, "slice with a stride")
    return [result]


@relation(Opcode.PAD)
def _pad(flow: Flow, instruction: Instruction) -> Leaves:
    (result,) = flow.fresh(instruction.shape)
    padding = padding_of(instruction)
    source = flow.of(instruction.operands[0])
    for d, (one, a, b) in enumerate(zip(padding, source, result, strict=True)):
        if one.interior:
            flow.stay([a, b], instruction, "padding between elements")
        else:
            _relate_cut(flow, instruction, d, a, b, (one.low, one.high))
    return [result]


_FEW_BLOCKS = 8
_SMALL_REST = 8
"""The number of times smaller than the whole a rest has to be."""


def _relate_cut(
    flow: Flow, instruction: Instruction, d: int, a: Factor, b: Factor, offsets: Sequence[int]
) -> None:
    """Two dimensions of which one is a part of the other: blocks of it, or nearly all of it.

    All but the first or last few elements: these few stay as many, whatever the size.
    """
    small, large = sorted((a, b), key=lambda factor: factor.size)
    if _leaves_a_rest(large.size, small.size, offsets):
        reason = f"%{instruction.name}: {instruction.opcode} at these offsets"
        flow.rests.append(Rest(large, small, large.size - small.size, reason))
    else:
        flow.blocks[instruction, d] = flow.share_blocks([a, b], offsets, instruction)


def _leaves_a_rest(whole: int, part: int, offsets: Sequence[int]) -> bool:
    """Whether `part` is nearly all of `whole`, and they are not just a few blocks."""
    block = gcd(whole, part, *offsets)
    is_few_blocks = block > 0 and whole // block <= _FEW_BLOCKS
    return not is_few_blocks and 0 < (whole - part) * _SMALL_REST <= part


# -- offsets that are computed ---------------------------------------------------------------------


@relation(Opcode.DYNAMIC_SLICE)
def _dynamic_slice(flow: Flow, instruction: Instruction) -> Leaves:
    (result,) = flow.fresh(instruction.shape)
    operand, *offsets = instruction.operands
    _relate_blocks(flow, instruction, flow.of(operand), result, offsets)
    return [result]


@relation(Opcode.DYNAMIC_UPDATE_SLICE)
def _dynamic_update_slice(flow: Flow, instruction: Instruction) -> Leaves:
    operand, update, *offsets = instruction.operands
    _relate_blocks(flow, instruction, flow.of(operand), flow.of(update), offsets)
    return [flow.of(operand)]


def _relate_blocks(
    flow: Flow,
    instruction: Instruction,
    whole: Dimensions,
    part: Dimensions,
    offsets: Sequence[Instruction],
) -> None:
    """`part` is at an offset in `whole` that is a multiple of blocks, in every dimension."""
    one_vector = bool(offsets) and bool(offsets[0].shape.dimensions)
    if one_vector:
        flow.stay(flow.of(offsets[0]), instruction, "the number of dimensions")
    for d, (a, b) in enumerate(zip(whole, part, strict=True)):
        if a.size == b.size:
            flow.same(a, b, instruction)  # wherever the offset is, it is clamped to 0
        elif one_vector:
            flow.stay([a, b], instruction, f"{instruction.opcode} by a vector of offsets")
        elif (trips := _trips(flow, instruction, offsets[d], d)) is not None:
            flow.same(a, trips, instruction)
        else:
            divisor = flow.facts.of(offsets[d]).divisor
            flow.blocks[instruction, d] = flow.share_blocks([a, b], [divisor], instruction)


def _trips(flow: Flow, instruction: Instruction, offset: Instruction, d: int) -> Factor | None:
    """The trips of the loop that goes over the layers along a dimension."""
    counter = flow.facts.of(offset).counter
    number = d + len(instruction.operands) - instruction.operands[0].shape.rank
    if counter is None or not is_index(instruction, number, counter):
        return None
    return counter.trips


# -- gather and scatter ----------------------------------------------------------------------------


@relation(Opcode.GATHER)
def _gather(flow: Flow, instruction: Instruction) -> Leaves:
    operand, indices = instruction.operands
    (result,) = flow.fresh(instruction.shape)
    window = ints(instruction, "offset_dims")
    batching = ints(instruction, "operand_batching_dims")
    dropped = (*ints(instruction, "collapsed_slice_dims"), *batching)
    source = flow.of(operand)
    for place, d in zip(window, _others(source, dropped), strict=True):
        _relate_window(flow, instruction, source[d], result[place])
    batches = _relate_batches(
        flow, instruction, flow.of(indices), [result[d] for d in _others(result, window)]
    )
    for d, place in zip(batching, ints(instruction, "start_indices_batching_dims"), strict=True):
        flow.same(source[d], batches[place], instruction)
    moved = [d for d in range(len(source)) if d not in batching]
    indexed = ints(instruction, "start_index_map")
    sizes = ints(instruction, "slice_sizes")
    _relate_indexed(flow, instruction, operand, indices, {d: sizes[d] for d in moved}, indexed)
    return [result]


@relation(Opcode.SCATTER)
def _scatter(flow: Flow, instruction: Instruction) -> Leaves:
    count = len(instruction.operands) // 2
    operands, indices = instruction.operands[:count], instruction.operands[count]
    window = ints(instruction, "update_window_dims")
    batching = ints(instruction, "input_batching_dims")
    dropped = (*ints(instruction, "inserted_window_dims"), *batching)
    source = flow.of(operands[0])
    for operand, updates in zip(operands, instruction.operands[count + 1 :], strict=True):
        flow.join([source], [flow.of(operand)], instruction)
        update = flow.of(updates)
        for place, d in zip(window, _others(source, dropped), strict=True):
            _relate_window(flow, instruction, source[d], update[place])
        batches = _relate_batches(
            flow, instruction, flow.of(indices), [update[d] for d in _others(update, window)]
        )
        places = ints(instruction, "scatter_indices_batching_dims")
        for d, place in zip(batching, places, strict=True):
            flow.same(source[d], batches[place], instruction)
    sizes = dict.fromkeys(ints(instruction, "inserted_window_dims"), 1)
    sizes |= {
        d: update[place].size for place, d in zip(window, _others(source, dropped), strict=True)
    }
    indexed = ints(instruction, "scatter_dims_to_operand_dims")
    _relate_indexed(flow, instruction, operands[0], indices, sizes, indexed)
    return [flow.of(operand) for operand in operands]


def _others(dimensions: Dimensions, left_out: Sequence[int]) -> list[int]:
    return [d for d in range(len(dimensions)) if d not in left_out]


def _relate_window(flow: Flow, instruction: Instruction, whole: Factor, part: Factor) -> None:
    if whole.size == part.size:
        flow.same(whole, part, instruction)
    elif part.size != 1:
        flow.stay([whole, part], instruction, f"the window of a {instruction.opcode}")


def _relate_batches(
    flow: Flow, instruction: Instruction, indices: Dimensions, batches: Sequence[Factor]
) -> Dimensions:
    """Index arrays have the batch dimensions and, perhaps, the dimension of index vectors."""
    vector = parse_int(instruction.attributes["index_vector_dim"])
    flow.stay(indices[vector : vector + 1], instruction, "index vectors")
    mine = [factor for d, factor in enumerate(indices) if d != vector]
    for a, b in zip(mine, batches, strict=True):
        flow.same(a, b, instruction)
    return indices


def _relate_indexed(
    flow: Flow,
    instruction: Instruction,
    operand: Instruction,
    indices: Instruction,
    sizes: Mapping[int, int],
    indexed: Sequence[int],
) -> None:
    """Keep dimensions along which windows smaller than the operand move, but for indices from
    outside.

    Those are in a range that nobody knows, so that any size is as good. `sizes` are those of the
    window by operand dimension, `indexed` the dimensions it is moved along.
    """
    is_gather = instruction.opcode is Opcode.GATHER
    computed = flow.facts.of(indices).computed or (is_gather and flow.facts.of(operand).computed)
    for d, size in sizes.items():
        source = flow.of(operand)[d]
        if size == source.size:
            continue
        if computed:
            reason = f"{instruction.opcode} by indices that do not depend on the inputs"
            flow.stay([source], instruction, reason)
        elif d not in indexed:
            flow.stay([source], instruction, f"the window of a {instruction.opcode}")


@relation(Opcode.TOPK)
def _topk(flow: Flow, instruction: Instruction) -> Leaves:
    results = flow.fresh(instruction.shape)
    source = flow.of(instruction.operands[0])
    for result in results:
        flow.join([source[:-1]], [result[:-1]], instruction)
    flow.share_blocks([source[-1], *(result[-1] for result in results)], (), instruction)
    return results


@relation(Opcode.GET_DIMENSION_SIZE)
def _get_dimension_size(flow: Flow, instruction: Instruction) -> Leaves:
    (dimension,) = ints(instruction, "dimensions")
    size = flow.of(instruction.operands[0])[dimension]
    flow.stay([size], instruction, "the size is read")
    return [()]
