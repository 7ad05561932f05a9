"""Gather and scatter: many blocks read or written at the positions in an array of indices.

Both move the dimensions that a block fills only in part to the front. There they index with one
array of positions per dimension; what is behind, a *row*, they read and write as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.updates import combine_in_order
from hloopt.interpreter.values import Array, Value, joined
from hloopt.ir.attributes.values import parse_int, parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

# -- where blocks are -------------------------------------------------------------------------


class _Starts(NamedTuple):
    """The starts of blocks: one block per element of arrays of the sizes `batch`."""

    batch: tuple[int, ...]
    of: dict[int, Array]
    """By operand dimension, where it is not 0 for all."""

    @staticmethod
    def read(
        indices: Array, vector: int, mapped: Sequence[int], batching: Sequence[tuple[int, int]]
    ) -> _Starts:
        """Dimension `vector` of the indices lists a start for each of the dimensions `mapped`.

        `batching` pairs dimensions of operand and indices whose positions go together.
        """
        if vector == indices.ndim:
            indices = indices[..., np.newaxis]
        if indices.dtype == np.uint64:
            indices = np.minimum(indices, np.iinfo(np.int64).max)
        vectors = np.moveaxis(indices.astype(np.int64), vector, -1)
        batch = vectors.shape[:-1]
        of = {dimension: vectors[..., i] for i, dimension in enumerate(mapped)}
        for dimension, of_indices in batching:
            axis = of_indices - (of_indices > vector)
            of[dimension] = _along(axis, len(batch), batch[axis]) + np.zeros(batch, np.int64)
        return _Starts(batch, of)


def _along(axis: int, rank: int, size: int) -> Array:
    """0, 1, 2, … along one axis."""
    return np.arange(size).reshape([size if a == axis else 1 for a in range(rank)])


class _Rows(NamedTuple):
    """The arrangement of rows in blocks."""

    order: list[int]
    """The operand's dimensions: first those that blocks fill in part, then those of a row."""
    positions: tuple[Array, ...]
    """For each dimension that is filled in part its positions, of the sizes of batch and block."""

    @staticmethod
    def of(sizes: Sequence[int], block: Sequence[int], starts: _Starts) -> _Rows:
        partial = [d for d, size in enumerate(sizes) if block[d] != size]
        whole = [d for d, size in enumerate(sizes) if block[d] == size]
        positions: list[Array] = []
        for number, d in enumerate(partial):
            start = starts.of.get(d, np.zeros(starts.batch, np.int64))
            inside = _along(number, len(partial), block[d])
            positions.append(start.reshape((*starts.batch, *[1] * len(partial))) + inside)
        return _Rows([*partial, *whole], tuple(positions))

    def numbers(self, sizes: Sequence[int], batch: tuple[int, ...]) -> Array:
        """The positions as one: the rows of the operand are numbered through."""
        numbers = np.zeros((*batch, *[1] * len(self.positions)), np.int64)
        for d, positions in zip(self.order, self.positions, strict=False):
            numbers = numbers * sizes[d] + positions
        return numbers


def _dims(instruction: Instruction, name: str) -> tuple[int, ...]:
    return parse_ints(instruction.attributes.get(name, "{}"))


def _other(dimensions: Sequence[int], rank: int) -> list[int]:
    return [dimension for dimension in range(rank) if dimension not in dimensions]


# -- gather -----------------------------------------------------------------------------------


@kernel(Opcode.GATHER)
def gather(instruction: Instruction, operand: Array, indices: Array) -> Array:
    """A block of `slice_sizes` per index, moved to lie inside of the operand. O(result)."""
    batching = _dims(instruction, "operand_batching_dims")
    starts = _Starts.read(
        indices,
        parse_int(instruction.attributes["index_vector_dim"]),
        _dims(instruction, "start_index_map"),
        list(zip(batching, _dims(instruction, "start_indices_batching_dims"), strict=True)),
    )
    # a dynamic dimension is filled as far as it goes
    block = list(map(min, _dims(instruction, "slice_sizes"), operand.shape))
    for d, start in starts.of.items():
        starts.of[d] = np.clip(start, 0, operand.shape[d] - block[d])
    rows = _Rows.of(operand.shape, block, starts)
    found = np.broadcast_to(
        operand.transpose(rows.order)[rows.positions],
        (*starts.batch, *(block[d] for d in rows.order)),
    )
    return _arranged(instruction, found, rows.order, batching)


def _arranged(
    instruction: Instruction, found: Array, order: Sequence[int], batching: Sequence[int]
) -> Array:
    """Blocks with the dimensions where the result has them; `found` has batch, then `order`."""
    batch_rank = found.ndim - len(order)
    axis_of = {d: batch_rank + number for number, d in enumerate(order)}
    dropped = sorted({*_dims(instruction, "collapsed_slice_dims"), *batching})
    kept = _other(dropped, len(order))
    offset_dims = _dims(instruction, "offset_dims")
    rank = batch_rank + len(kept)
    axes = dict(zip(_other(offset_dims, rank), range(batch_rank), strict=True))
    axes.update(zip(offset_dims, (axis_of[d] for d in kept), strict=True))
    arranged = found.transpose([axes[d] for d in range(rank)] + [axis_of[d] for d in dropped])
    sizes = arranged.shape[:rank]
    if 0 in arranged.shape[rank:]:  # there is nothing to read: XLA gives zeros
        return np.zeros(sizes, found.dtype)
    return arranged.reshape(sizes)


# -- scatter ----------------------------------------------------------------------------------


@kernel(Opcode.SCATTER, calls=True)
def scatter(plans: Plans, instruction: Instruction, *operands: Array) -> Value:
    """The operands with blocks of the updates combined into them, one after the other.

    A block that does not lie inside of the operand is left out. For the cost see
    `combine_in_order`.
    """
    count = len(operands) // 2
    inputs, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    batching = _dims(instruction, "input_batching_dims")
    starts = _Starts.read(
        indices,
        parse_int(instruction.attributes["index_vector_dim"]),
        _dims(instruction, "scatter_dims_to_operand_dims"),
        list(zip(batching, _dims(instruction, "scatter_indices_batching_dims"), strict=True)),
    )
    sizes = inputs[0].shape
    dropped = {*_dims(instruction, "inserted_window_dims"), *batching}
    windows = _dims(instruction, "update_window_dims")
    block = [1] * len(sizes)
    for d, of_update in zip(_other(sorted(dropped), len(sizes)), windows, strict=True):
        block[d] = updates[0].shape[of_update]
    rows = _Rows.of(sizes, block, starts)
    inside = _inside(sizes, block, starts)
    numbers = rows.numbers(sizes, starts.batch)[inside].reshape(-1)
    partial = len(rows.positions)
    row_count, row_size = (
        prod(sizes[d] for d in part) for part in (rows.order[:partial], rows.order[partial:])
    )

    def listed(update: Array) -> Array:
        """The rows of an update, in the order of `numbers`."""
        in_order = update.transpose(_other(windows, update.ndim) + list(windows))
        placed = in_order.reshape((*starts.batch, *block))
        batch_rank = len(starts.batch)
        axes = [*range(batch_rank), *(batch_rank + d for d in rows.order)]
        return placed.transpose(axes)[inside].reshape(len(numbers), row_size)

    results = [
        np.array(operand.transpose(rows.order), order="C").reshape(row_count, row_size)
        for operand in inputs
    ]
    combine_in_order(plans, instruction.called[0], results, numbers, list(map(listed, updates)))
    back = np.argsort(rows.order).astype(int)
    found = tuple(
        result.reshape([sizes[d] for d in rows.order]).transpose(back) for result in results
    )
    return joined(instruction.shape, found)


def _inside(sizes: Sequence[int], block: Sequence[int], starts: _Starts) -> Array:
    """The blocks that lie inside of the operand."""
    inside = np.ones(starts.batch, bool)
    for d, start in starts.of.items():
        inside &= (start >= 0) & (start <= sizes[d] - block[d])
    return inside
