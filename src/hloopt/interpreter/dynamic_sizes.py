"""Sizes of the moment of arrays with dynamic dimensions."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from itertools import accumulate
from math import prod
from operator import mul

import numpy as np

from hloopt.diagnostics import counted
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.values import Array
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape


def reshaped_sizes(source: Shape, sizes: Sequence[int], target: Shape) -> Sequence[int]:
    """The sizes of an array of shape `source`, now `sizes`, when it is reshaped to `target`.

    Within each run of dimensions that becomes another run, a dynamic one takes what the others
    leave. Raises RunError where they do not divide the element count.
    """
    bounds = source.dimensions
    if tuple(sizes) == bounds:
        return target.dimensions
    result = list(target.dimensions)
    for of_source, of_target in _runs(bounds, target.dimensions):
        if all(sizes[d] == bounds[d] for d in of_source):
            continue
        longer = next((d for d in of_target if target.dimensions[d] != 1), of_target[0])
        free = next((d for d in of_target if target.dynamic[d]), longer)
        count = prod(sizes[d] for d in of_source)
        others = prod(result[d] for d in of_target if d != free)
        if count % others:
            raise RunError(
                f"{counted(count, 'element is', 'elements are')} no multiple of {others}",
                code="HLO501",
            )
        result[free] = count // others
    return result


def _runs(a: Sequence[int], b: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """The smallest runs of dimensions of `a` and `b` that have the same elements."""
    before_a = list(accumulate(a, mul, initial=1))
    before_b = list(accumulate(b, mul, initial=1))
    starts = sorted({*before_a[:-1]} & {*before_b[:-1]} - {before_a[-1]})
    runs: list[tuple[list[int], list[int]]] = [([], []) for _ in range(len(starts) + 1)]
    for side, before in enumerate((before_a, before_b)):
        for dimension, start in enumerate(before[:-1]):
            runs[bisect(starts, start)][side].append(dimension)
    return runs


def sets_static_size(instruction: Instruction) -> bool:
    """Whether an instruction is a set-dimension-size of a dimension that its shape calls static."""
    if instruction.opcode is not Opcode.SET_DIMENSION_SIZE:
        return False
    (dimension,) = dimensions_of(instruction)
    return not instruction.shape.dynamic[dimension]


def operands_read(instruction: Instruction) -> Sequence[Instruction]:
    """The instructions whose values an instruction reads: its operands, with one exception.

    A reshape of static shape that splits a dimension reads all elements there were before
    set-dimension-size made it smaller, as on XLA:CPU, where these are still in memory.
    """
    if instruction.opcode is not Opcode.RESHAPE or instruction.shape.is_dynamic:
        return instruction.operands
    (source,) = instruction.operands
    while sets_static_size(source):
        (dimension,) = dimensions_of(source)
        sizes = instruction.shape.dimensions
        runs = _runs(source.shape.dimensions, sizes)
        parts = next(of_target for of_source, of_target in runs if dimension in of_source)
        if sum(sizes[part] != 1 for part in parts) < 2:
            break
        source = source.operands[0]
    return (source,)


def in_common_sizes(instruction: Instruction, operands: Sequence[Array]) -> list[Array]:
    """The operands of an elementwise instruction with a dynamic result, cut to sizes that fit.

    In each dimension the dynamic operands decide: those of size 1 give way to the others, of which
    the least counts. What is of size 1 then broadcasts.
    """
    shapes = [operand.shape for operand in instruction.operands]
    common: list[int] = []
    for d in range(instruction.shape.rank):
        full = [(array.shape[d], shape.dynamic[d]) for array, shape in _ranked(operands, shapes)]
        decisive = [size for size, is_dynamic in full if is_dynamic] or [size for size, _ in full]
        common.append(min((size for size in decisive if size != 1), default=1))
    cut = tuple(map(slice, common))
    return [np.asarray(operand[cut]) if operand.ndim else operand for operand in operands]


def _ranked(arrays: Sequence[Array], shapes: Sequence[Shape]) -> list[tuple[Array, Shape]]:
    """Arrays with their shapes, without the scalars of select and clamp."""
    return [(array, shape) for array, shape in zip(arrays, shapes, strict=True) if array.ndim]
