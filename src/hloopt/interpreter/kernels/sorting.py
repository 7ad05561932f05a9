"""Sort, by any comparator, and the largest values.

A comparator that only compares a key, one function of the values of either side, is left to NumPy.
For any other one there is a merge sort that compares whole arrays at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hloopt.interpreter.arithmetic.lanes import stable_order
from hloopt.interpreter.arithmetic.ordering import total_order_key
from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.limits import Tick
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.scalar_calls import apply_to_arrays, only_elementwise
from hloopt.interpreter.values import Array, Value, joined, widened
from hloopt.ir.attributes.explicit import is_total_order
from hloopt.ir.attributes.typed import dimensions_of, direction_of
from hloopt.ir.attributes.values import parse_bool, parse_int
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


@kernel(Opcode.SORT, calls=True)
def sort(plans: Plans, instruction: Instruction, *operands: Array) -> Value:
    """Operands sorted together along a dimension; always stable."""
    (dimension,) = dimensions_of(instruction)
    comparator = instruction.called[0]
    key = _key_of(comparator) if plans.ask(only_elementwise, comparator) else None
    if key is not None:
        values = _ascending(plans, comparator, key, operands)
        lanes = np.moveaxis(values, dimension, -1)
        tick = plans.limits.tick()
        if key.is_inclusive:  # equal elements in turn call for being exchanged
            in_lanes = lanes.shape[-1] - 1 - stable_order(np.flip(lanes, -1), tick)
        else:
            in_lanes = stable_order(lanes, tick)
        order = np.moveaxis(in_lanes, -1, dimension)
        results = [np.take_along_axis(operand, order, dimension) for operand in operands]
    else:
        apart = [np.moveaxis(operand, dimension, -1) for operand in operands]
        merged = _merge_sort(plans, comparator, apart)
        results = [np.moveaxis(lane, -1, dimension) for lane in merged]
    return joined(instruction.shape, results)


@kernel(Opcode.TOPK, calls=True)
def topk(plans: Plans, instruction: Instruction, operand: Array) -> Value:
    """The first k of the values along the last dimension in their total order, and where they are;
    among equals the first ones."""
    largest = parse_bool(instruction.attributes.get("largest", "true"))
    count = parse_int(instruction.attributes["k"])
    return top_values(operand, count, plans.limits.tick(), largest=largest)


def top_values(operand: Array, count: int, tick: Tick, *, largest: bool) -> tuple[Array, Array]:
    key = total_order_key(operand)
    order = stable_order(~key if largest else key, tick)[..., :count]
    return np.take_along_axis(operand, order, -1), order.astype(np.int32)


class _Key(NamedTuple):
    """The key that a comparator compares."""

    root: Instruction
    """A function of the parameters of one side."""
    side: int
    """0 for the side that comes first where the comparator is true, else 1."""
    is_descending: bool
    is_inclusive: bool
    """Whether the comparator is true for equal keys."""
    is_total_order: bool


def _key_of(comparator: Computation) -> _Key | None:
    """The key of a comparator that is one comparison of a function of either side. O(size)."""
    root = comparator.root
    direction = direction_of(root)
    if root.opcode is not Opcode.COMPARE or direction not in ("LT", "GT", "LE", "GE"):
        return None
    sides: set[int] = set()
    left, right = root.operands
    if not _is_mirrored(left, right, sides, set()) or len(sides) != 1:
        return None
    is_total = is_total_order(root)
    (side,) = sides
    is_descending = (direction[0] == "G") != (side == 1)
    return _Key(left, side, is_descending, direction[1] == "E", is_total)


def _is_mirrored(
    left: Instruction,
    right: Instruction,
    sides: set[int],
    seen: set[tuple[Instruction, Instruction]],
) -> bool:
    """Whether `right` is `left` with the parameters of the other side; which side `left` has is
    added to `sides`."""
    if (left, right) in seen:
        return True
    seen.add((left, right))
    if left.opcode is not right.opcode or left.shape.type_name != right.shape.type_name:
        return False
    if left.opcode is Opcode.PARAMETER:
        sides.add(left.parameter_number % 2)
        return left.parameter_number ^ 1 == right.parameter_number
    return (
        not left.called
        and left.payload == right.payload
        and {**left.attributes, "metadata": ""} == {**right.attributes, "metadata": ""}
        and len(left.operands) == len(right.operands)
        and all(
            _is_mirrored(a, b, sides, seen)
            for a, b in zip(left.operands, right.operands, strict=True)
        )
    )


def _ascending(
    plans: Plans, comparator: Computation, key: _Key, operands: Sequence[Array]
) -> Array:
    """The key of each element, turned around where the largest is to come first."""
    arguments = []
    for operand in operands:
        unused = np.zeros((), operand.dtype)
        arguments += [unused, operand] if key.side else [operand, unused]
    values = apply_to_arrays(plans, comparator, arguments, root=key.root)
    values = total_order_key(values) if key.is_total_order else widened(values)
    if not key.is_descending:
        return np.asarray(values)
    return np.asarray(-values if values.dtype.kind == "f" else ~values)


def _merge_sort(plans: Plans, comparator: Computation, lanes: Sequence[Array]) -> list[Array]:
    """Arrays sorted together along the last dimension, n long: log² n comparisons of all elements.

    Each round merges neighbouring runs: the place of each element of a right run is found by
    bisection in the left run, for all runs at the same time. A permutation of the elements even
    where the comparator is no order.
    """
    shape = lanes[0].shape
    size = shape[-1]
    rows = [lane.reshape(-1, size) if size else lane for lane in lanes]
    positions = np.arange(size)
    width = 1
    while width < size:
        is_right = positions // width % 2 == 1
        right = positions[is_right]
        start = right - right % width - width  # of the left run
        first_behind = start + _insertion_points(plans, comparator, rows, right, start, width)
        # Nothing to do for an order; else it keeps the places apart.
        first_behind = np.maximum.accumulate(first_behind, axis=1)
        takes_right = np.zeros(rows[0].shape, np.bool_)
        np.put_along_axis(takes_right, first_behind + right % width, True, axis=1)
        rows = [_merged(row, is_right, takes_right) for row in rows]
        width *= 2
    return [row.reshape(shape) for row in rows]


def _insertion_points(
    plans: Plans,
    comparator: Computation,
    rows: Sequence[Array],
    right: Array,
    start: Array,
    width: int,
) -> Array:
    """The number of elements of the run of `width` at `start` stay before the element at
    `right`."""
    low = np.zeros((len(rows[0]), len(right)), np.int64)
    high = np.full_like(low, width)
    elements = [row[:, right] for row in rows]
    for _ in range(width.bit_length()):
        middle = (low + high) // 2
        at = start + np.minimum(middle, width - 1)
        arguments = []
        for row, element in zip(rows, elements, strict=True):
            arguments += [element, np.take_along_axis(row, at, axis=1)]
        is_before = apply_to_arrays(plans, comparator, arguments)
        is_open = low < high
        high = np.where(is_open & is_before, middle, high)
        low = np.where(is_open & ~is_before, middle + 1, low)
    return low


def _merged(row: Array, is_right: Array, takes_right: Array) -> Array:
    """The elements of right runs where `takes_right`, the others elsewhere, both in order."""
    result = np.empty_like(row)
    result[takes_right] = row[:, is_right].reshape(-1)
    result[~takes_right] = row[:, ~is_right].reshape(-1)
    return result
