"""Reductions along dimensions, and scans."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from hloopt.interpreter.kernels import kernel
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.reducers import is_associative_selection, ufuncs_of
from hloopt.interpreter.scalar_calls import combine
from hloopt.interpreter.values import Array, Value, computing_type, dtype_of_shape, joined
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.attributes.values import parse_bool, parse_int, parse_ints
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_Arrays = list[Array]
_SHORT = 16
"""So many steps are not worth finding out whether they can be regrouped."""


@kernel(Opcode.REDUCE, calls=True)
def reduce(plans: Plans, instruction: Instruction, *operands: Value) -> Value:
    """n arrays and n initial values to n arrays.

    Common operations and comparisons such as argmax take a few operations of NumPy. Whatever else
    is not known to be associative: it folds the reduced elements in row-major order, one after
    another, each for all results at once.
    """
    count = len(operands) // 2
    arrays, initial = operands[:count], operands[count:]
    computation = instruction.called[0]
    axes = dimensions_of(instruction)
    kept = [axis for axis in range(arrays[0].ndim) if axis not in axes]
    sizes = [arrays[0].shape[axis] for axis in kept]
    ufuncs = plans.ask(ufuncs_of, computation)
    if ufuncs is not None:
        results = [
            _reduce_by_ufunc(*argument, axes)
            for argument in zip(ufuncs, arrays, initial, strict=True)
        ]
    else:
        extent = prod(arrays[0].shape[axis] for axis in axes)
        rows = [array.transpose(*sorted(axes), *kept).reshape(extent, *sizes) for array in arrays]
        start = [np.broadcast_to(value, sizes) for value in initial]
        if extent > _SHORT and plans.ask(is_associative_selection, computation):
            rows, extent = _halve_to_one(plans, computation, rows), 1
        results = _fold(plans, computation, start, rows, extent)
    return joined(instruction.shape, results)


def _reduce_by_ufunc(ufunc: np.ufunc, array: Array, initial: Array, axes: tuple[int, ...]) -> Array:
    dtype = computing_type(array.dtype)
    if not prod(array.shape[axis] for axis in axes):
        sizes = [size for axis, size in enumerate(array.shape) if axis not in axes]
        return np.broadcast_to(initial, sizes)
    reduced = ufunc.reduce(array.astype(dtype, copy=False), axis=axes, dtype=dtype)
    return np.asarray(ufunc(initial.astype(dtype), reduced)).astype(array.dtype, copy=False)


def _fold(
    plans: Plans, computation: Computation, start: _Arrays, rows: _Arrays, extent: int
) -> _Arrays:
    """Apply a computation to accumulators and each of the rows in turn."""
    accumulators = start
    for number in range(extent):
        accumulators = combine(plans, computation, accumulators, [row[number] for row in rows])
    return accumulators


def _halve_to_one(plans: Plans, computation: Computation, rows: _Arrays) -> _Arrays:
    """One row, by an associative computation on pairs of neighbours. O(log rows) calls."""
    while (extent := len(rows[0])) > 1:
        even = extent // 2 * 2
        pairs = combine(
            plans, computation, [row[0:even:2] for row in rows], [row[1:even:2] for row in rows]
        )
        if even < extent:
            pairs = [np.concatenate((p, row[even:])) for p, row in zip(pairs, rows, strict=True)]
        rows = pairs
    return rows


@kernel(Opcode.SCAN, calls=True)
def scan(plans: Plans, instruction: Instruction, *operands: Value) -> Value:
    """Run a computation on slices along a dimension, handing carries on from one to the next.

    Operands are inputs and then carries; results are outputs, stacked along that dimension, and
    then the last carries. One run of the computation per slice.
    """
    from hloopt.interpreter.evaluation import evaluate_alone

    attributes, computation = instruction.attributes, instruction.called[0]
    (axis,) = parse_ints(attributes["dimensions"])
    inputs = len(operands) - parse_int(attributes["num_carries"])
    extent = operands[0].shape[axis]
    order: Sequence[int] = range(extent)
    if parse_bool(attributes.get("is_reverse", "false")):
        order = range(extent - 1, -1, -1)
    carries: Sequence[Value] = operands[inputs:]
    slices = [np.moveaxis(operand, axis, 0) for operand in operands[:inputs]]
    outputs = _empty_outputs(instruction, axis, extent, len(carries))
    for number in order:
        elements = [np.asarray(rows[number]) for rows in slices]
        result = evaluate_alone(computation, [*elements, *carries], plans)
        parts = result if isinstance(result, tuple) else (result,)
        for output, part in zip(outputs, parts, strict=False):
            np.moveaxis(output, axis, 0)[number] = part
        carries = parts[len(outputs) :]
    return joined(instruction.shape, [*outputs, *carries])


def _empty_outputs(instruction: Instruction, axis: int, extent: int, carries: int) -> _Arrays:
    shape = instruction.shape
    shapes = shape.elements if shape.is_tuple else (shape,)
    outputs = []
    for leaf in shapes[: len(shapes) - carries]:
        sizes = list(leaf.dimensions)
        sizes[axis] = extent
        outputs.append(np.empty(sizes, dtype_of_shape(leaf)))
    return outputs
