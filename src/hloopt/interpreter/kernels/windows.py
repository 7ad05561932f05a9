"""Windows that slide over arrays: reduce-window and select-and-scatter."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hloopt.interpreter.arithmetic.window_views import count_places, pad_base, windows_over
from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.reducers import identity_of, ufuncs_of
from hloopt.interpreter.scalar_calls import apply_to_arrays, combine
from hloopt.interpreter.updates import combine_in_order
from hloopt.interpreter.values import Array, Value, computing_type, joined
from hloopt.ir.attributes.typed import window_of
from hloopt.ir.attributes.values import WindowDimension
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_Windows = tuple[WindowDimension, ...]


@kernel(Opcode.REDUCE_WINDOW, calls=True)
def reduce_window(plans: Plans, instruction: Instruction, *operands: Value) -> Value:
    """n arrays and n initial values to n arrays; each result starts with the initial value once.

    Common operations go dimension by dimension, in O(log window) steps of NumPy each. Whatever
    else folds the elements of a window in row-major order, each for all results at once.
    """
    count = len(operands) // 2
    arrays, initial = operands[:count], operands[count:]
    computation = instruction.called[0]
    window = _window(instruction)
    ufuncs = plans.ask(ufuncs_of, computation)
    if ufuncs is not None:
        results = [
            _reduce_by_ufunc(*argument, window)
            for argument in zip(ufuncs, arrays, initial, strict=True)
        ]
    else:
        results = _fold_windows(plans, computation, arrays, initial, window)
    return joined(instruction.shape, results)


def _window(instruction: Instruction) -> _Windows:
    return window_of(instruction).dimensions


def _reduce_by_ufunc(ufunc: np.ufunc, array: Array, initial: Array, window: _Windows) -> Array:
    dtype = computing_type(array.dtype)
    wide = pad_base(array.astype(dtype, copy=False), window, identity_of(ufunc, dtype))
    for axis, dimension in enumerate(window):
        wide = np.moveaxis(_reduce_along(ufunc, np.moveaxis(wide, axis, 0), dimension), 0, axis)
    return np.asarray(ufunc(initial.astype(dtype), wide)).astype(array.dtype, copy=False)


def _reduce_along(ufunc: np.ufunc, rows: Array, dimension: WindowDimension) -> Array:
    """Reduce windows over the first dimension of a padded array.

    Either element by element of the window, for all windows at once, or, where windows overlap
    much, with windows of 1, 2, 4, … rows at all places.
    """
    places = count_places(len(rows), dimension)
    size, step, stride = dimension.size, dimension.rhs_dilate, dimension.stride
    if not places:
        return rows[:0]
    if not size:
        return np.broadcast_to(identity_of(ufunc, rows.dtype), (places, *rows.shape[1:]))
    end = (places - 1) * stride + 1
    doublings = size.bit_length()
    if size * places <= 2 * doublings * len(rows):
        result = rows[:end:stride]
        for offset in range(step, size * step, step):
            result = ufunc(result, rows[offset : offset + end : stride])
        return result
    total: Array | None = None
    offset, power, reach = 0, rows, step  # power: the windows of reach / step rows
    while size:
        if size & 1:
            part = power[offset : offset + end : stride]
            total = part if total is None else ufunc(total, part)
            offset += reach
        size >>= 1
        if size:
            power = ufunc(power[:-reach], power[reach:])
            reach *= 2
    assert total is not None
    return total


def _fold_windows(
    plans: Plans,
    computation: Computation,
    arrays: Sequence[Array],
    initial: Sequence[Array],
    window: _Windows,
) -> list[Array]:
    views = [
        windows_over(pad_base(array, window, np.zeros((), array.dtype)), window) for array in arrays
    ]
    inside = windows_over(_inside(arrays[0].shape, window), window)
    sizes = inside.shape[: len(window)]
    accumulators = [np.broadcast_to(value, sizes) for value in initial]
    for place in np.ndindex(*(d.size for d in window)):
        index = (..., *place)
        elements = [view[index] for view in views]
        combined = combine(plans, computation, accumulators, elements)
        is_inside = inside[index]
        accumulators = [
            np.where(is_inside, new, old) for new, old in zip(combined, accumulators, strict=True)
        ]
    return accumulators


def _inside(sizes: tuple[int, ...], window: _Windows) -> Array:
    """A mask of the elements of a padded array that are its own."""
    return pad_base(np.broadcast_to(np.True_, sizes), window, np.asarray(False))


@kernel(Opcode.SELECT_AND_SCATTER, calls=True)
def select_and_scatter(
    plans: Plans, instruction: Instruction, operand: Array, source: Array, initial: Array
) -> Array:
    """Combine each element of `source` into the place its window of `operand` selects.

    A window keeps what it has selected so far where `select` says so of it and the next element.
    """
    select, scatter = instruction.called
    window = _window(instruction)
    positions = np.arange(operand.size).reshape(operand.shape)
    values = windows_over(pad_base(operand, window, np.zeros((), operand.dtype)), window)
    numbers = windows_over(pad_base(positions, window, np.asarray(-1)), window)
    chosen = np.full(source.shape, -1)
    best = np.zeros(source.shape, operand.dtype)
    for place in np.ndindex(*(d.size for d in window)):
        index = (..., *place)
        number, value = numbers[index], values[index]
        keeps = apply_to_arrays(plans, select, [best, value])
        takes = (number >= 0) & ((chosen < 0) | ~keeps)
        chosen, best = np.where(takes, number, chosen), np.where(takes, value, best)
    result = np.full((operand.size, 1), initial, operand.dtype)
    has_chosen = chosen >= 0
    updates = source[has_chosen].reshape(-1, 1)
    combine_in_order(plans, scatter, [result], chosen[has_chosen], [updates])
    return result.reshape(operand.shape)
