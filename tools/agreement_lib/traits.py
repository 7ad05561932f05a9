"""Known differences of XLA:CPU, recognized in the values of one run.

A trait names an operation and what its operands must be for the results to differ: that a module
has a sort explains nothing, that it has an unstable one of equal keys does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from hloopt.interpreter.dynamic_sizes import sets_static_size
from hloopt.interpreter.values import Value, arrays_of
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.typed import window_of
from hloopt.ir.reduction_kind import ReductionKind, reduction_kind


class Trait(NamedTuple):
    """One kind of difference."""

    reason: str
    opcodes: tuple[Opcode, ...]
    holds: Callable[[Instruction, Sequence[Value]], bool]
    """Whether an instruction with these values of its operands can make the difference."""
    only_nan: bool = False
    """Whether it explains only what is NaN here and not there."""


def _has_equal_keys(sort: Instruction, operands: Sequence[Value]) -> bool:
    if sort.attributes.get("is_stable") == "true":
        return False
    (dimension,) = _integers(sort.attributes["dimensions"])
    comparator = sort.called[0]
    keys = [
        np.asarray(operands[number // 2])
        for number, parameter in enumerate(_by_number(comparator.parameters))
        if parameter.users and number % 2 == 0
    ]
    if not keys or len(operands) < 2:
        # One array of equal keys looks the same in any order, unless the order ignores bits of it.
        return bool(keys) and keys[0].dtype.kind not in "iub"
    lines = [np.moveaxis(key, dimension, -1).reshape(-1, key.shape[dimension]) for key in keys]
    return any(
        len({tuple(line[row, column].tobytes() for line in lines) for column in range(size)}) < size
        for size in (keys[0].shape[dimension],)
        for row in range(len(lines[0]))
    )


def _starts_elsewhere(reduce: Instruction, operands: Sequence[Value]) -> bool:
    """Whether an initial value is not neutral, so that it counts how often it is applied."""
    starts = operands[len(operands) // 2 :]
    kind = reduction_kind(reduce.called[0])
    if kind is None:
        return True
    return any(not _is_neutral(kind, np.asarray(start)) for start in starts)


def _is_neutral(kind: ReductionKind, start: Any) -> bool:
    if kind is ReductionKind.SUM:
        return bool(start == 0)
    if kind is ReductionKind.PRODUCT:
        return bool(start == 1)
    if start.dtype.kind in "iu":
        limits = np.iinfo(start.dtype)
        return bool(start == (limits.min if kind is ReductionKind.MAX else limits.max))
    if start.dtype.kind == "b":
        return bool(start) == (kind is ReductionKind.MIN)
    return bool(np.isneginf(start) if kind is ReductionKind.MAX else np.isposinf(start))


def _has_nan(instruction: Instruction, operands: Sequence[Value]) -> bool:
    for called in instruction.called:  # of reductions only maximum and minimum
        if reduction_kind(called) not in (ReductionKind.MAX, ReductionKind.MIN):
            return False
    arrays = [array for operand in operands for array in arrays_of(operand)]
    return any(bool(np.isnan(a.astype(np.float64)).any()) for a in arrays if _is_float(a))


def _is_float(array: Any) -> bool:
    return array.dtype.kind not in "iubc"


def _is_clamped_twice(inner: Instruction, operands: Sequence[Value]) -> bool:
    """Whether a slice that is sliced again starts where it must be moved to fit."""
    source = inner.operands[0].shape
    starts = [int(np.asarray(index)) for index in operands[1:]]
    limits = [a - b for a, b in zip(source.dimensions, inner.shape.dimensions, strict=True)]
    is_moved = any(not 0 <= start <= limit for start, limit in zip(starts, limits, strict=False))
    sliced = (Opcode.DYNAMIC_SLICE,)
    return is_moved and (
        inner.operands[0].opcode in sliced or any(user.opcode in sliced for user in inner.users)
    )


def _has_bounds_out_of_order(clamp: Instruction, operands: Sequence[Value]) -> bool:
    low, _, high = (np.asarray(operand) for operand in operands)
    return bool((low > high).any())


def _is_root_of_a_square(root: Instruction, operands: Sequence[Value]) -> bool:
    square = root.operands[0]
    is_square = square.opcode is Opcode.MULTIPLY and square.operands[0] is square.operands[1]
    return is_square and np.asarray(operands[0]).dtype.kind == "c"


def _has_an_algorithm(dot: Instruction, operands: Sequence[Value]) -> bool:
    return "bf16" in dot.attributes.get("algorithm", "")


def _scatters_one_array_twice(scatter: Instruction, operands: Sequence[Value]) -> bool:
    """Whether two operands are one array, or constants of which XLA makes one."""
    arrays = scatter.operands[: len(scatter.operands) // 2]
    keys = {
        np.asarray(value).tobytes() if array.opcode is Opcode.CONSTANT else array
        for array, value in zip(arrays, operands, strict=False)
    }
    return len(keys) < len(arrays)


def _is_beyond_its_bound(resize: Instruction, operands: Sequence[Value]) -> bool:
    (dimension,) = _integers(resize.attributes["dimensions"])
    size = int(np.asarray(operands[1]))
    return not 0 <= size <= resize.operands[0].shape.dimensions[dimension]


def _is_called_static(size: Instruction, operands: Sequence[Value]) -> bool:
    return sets_static_size(size.operands[0])


def _may_overflow_or_vanish(reduce: Instruction, operands: Sequence[Value]) -> bool:
    """Whether some factors of a product go beyond all numbers of its type, and others to zero."""
    if reduction_kind(reduce.called[0]) is not ReductionKind.PRODUCT:
        return False
    factors = np.abs(np.asarray(operands[0]).astype(np.float64))
    if not np.isfinite(factors).all():
        return bool((factors == 0).any())
    exponents = np.log2(factors, where=factors > 0, out=np.full(factors.shape, -np.inf))
    range_of_type = np.finfo(np.float32)
    return bool(
        exponents[exponents > 0].sum() >= range_of_type.maxexp
        and exponents[exponents < 0].sum() <= range_of_type.minexp
    )


def _sums_many_in_16_bits(reduce: Instruction, operands: Sequence[Value]) -> bool:
    if reduction_kind(reduce.called[0]) is not ReductionKind.SUM:
        return False
    array = np.asarray(operands[0])
    if reduce.opcode is Opcode.REDUCE_WINDOW:
        # A window larger than the array holds padding beside it.
        sizes = zip(window_of(reduce).dimensions, array.shape, strict=True)
        count = prod(min(dimension.size, size) for dimension, size in sizes)
    else:
        count = array.size // max(reduce.shape.element_count(), 1)
    return array.dtype.itemsize <= 2 and _is_float(array) and count >= 256


def _integers(text: str) -> list[int]:
    return [int(part) for part in text.strip("{}").split(",") if part.strip()]


def _by_number(parameters: Sequence[Instruction]) -> list[Instruction]:
    return sorted(parameters, key=lambda parameter: parameter.parameter_number or 0)


TRAITS = (
    Trait("an unstable sort of equal keys", (Opcode.SORT,), _has_equal_keys),
    Trait(
        "an initial value that is not neutral, which XLA:CPU applies once per part or not at all",
        (Opcode.REDUCE, Opcode.REDUCE_WINDOW),
        _starts_elsewhere,
    ),
    Trait(
        "a sum of hundreds of small floats, which XLA:CPU rounds after each step",
        (Opcode.REDUCE, Opcode.REDUCE_WINDOW),
        _sums_many_in_16_bits,
    ),
    Trait(
        "a maximum or minimum of NaN, which XLA:CPU loses where it is vectorized",
        (
            *(Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.REDUCE, Opcode.REDUCE_WINDOW),
            *(Opcode.ALL_REDUCE, Opcode.CLAMP),
        ),
        _has_nan,
        only_nan=True,
    ),
    Trait(
        "a slice of a slice with an offset out of range, which XLA merges",
        (Opcode.DYNAMIC_SLICE,),
        _is_clamped_twice,
    ),
    Trait("a clamp with its bounds out of order", (Opcode.CLAMP,), _has_bounds_out_of_order),
    Trait(
        "the root of a complex square, which XLA takes for abs",
        (Opcode.SQRT,),
        _is_root_of_a_square,
    ),
    Trait("an algorithm of a dot, which XLA:CPU ignores", (Opcode.DOT,), _has_an_algorithm),
    Trait(
        "a scatter of one array for two operands, whose results XLA:CPU mixes up",
        (Opcode.SCATTER,),
        _scatters_one_array_twice,
    ),
    Trait(
        "a size set beyond its bound, which XLA reports as it is",
        (Opcode.SET_DIMENSION_SIZE,),
        _is_beyond_its_bound,
    ),
    Trait(
        "the size of a dimension that its shape calls static, which MLIR makes dynamic",
        (Opcode.GET_DIMENSION_SIZE,),
        _is_called_static,
    ),
    Trait(
        "a product of factors beyond all numbers and of others near zero, in another order",
        (Opcode.REDUCE,),
        _may_overflow_or_vanish,
        only_nan=True,
    ),
)
