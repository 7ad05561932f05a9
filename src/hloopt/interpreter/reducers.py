"""Reducing computations recognized as operations of NumPy, or as associative."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from hloopt.interpreter.plan import Plans
from hloopt.interpreter.scalar_calls import combine, only_elementwise
from hloopt.interpreter.values import Array, dtype_of_shape
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_UFUNCS: dict[Opcode, np.ufunc] = {
    Opcode.ADD: np.add,
    Opcode.MULTIPLY: np.multiply,
    Opcode.MAXIMUM: np.maximum,
    Opcode.MINIMUM: np.minimum,
    Opcode.AND: np.bitwise_and,
    Opcode.OR: np.bitwise_or,
    Opcode.XOR: np.bitwise_xor,
}
_OF_COMPLEX_NUMBERS = frozenset((Opcode.ADD, Opcode.MULTIPLY))
_ORDER_ONLY = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.COMPARE, Opcode.SELECT, Opcode.TUPLE, Opcode.MAXIMUM),
        Opcode.MINIMUM,
    )
)
"""Opcodes that only look at the order of values; those of _LOGIC do on truth values."""
_LOGIC = frozenset((Opcode.AND, Opcode.OR, Opcode.NOT, Opcode.XOR))
_FLOAT_SAMPLES = (-1.0, -0.0, 0.0, 1.0, np.nan, -np.nan)
_INTEGER_SAMPLES = (0, 1, 2)
_MOST_SAMPLED_ACCUMULATORS = 2


def ufuncs_of(plans: Plans, computation: Computation) -> list[np.ufunc] | None:
    """An associative and commutative ufunc for each accumulator of a reducing computation.

    None where one of them is anything else than an operation on that accumulator and its element.
    """
    root = computation.root
    results = root.operands if root.opcode is Opcode.TUPLE else [root]
    if 2 * len(results) != len(computation.parameters):
        return None
    found = [
        _ufunc_of(computation, result, number, number + len(results))
        for number, result in enumerate(results)
    ]
    ufuncs = [ufunc for ufunc in found if ufunc is not None]
    return ufuncs if len(ufuncs) == len(results) else None


def _ufunc_of(
    computation: Computation, result: Instruction, accumulator: int, element: int
) -> np.ufunc | None:
    parameters = computation.parameters
    arguments = {parameters[accumulator], parameters[element]}
    if set(result.operands) != arguments or len(result.operands) != 2:
        return None
    if not all(argument.shape.is_scalar for argument in arguments):
        return None
    if dtype_of_shape(result.shape).kind == "c" and result.opcode not in _OF_COMPLEX_NUMBERS:
        return None
    return _UFUNCS.get(result.opcode)


def identity_of(ufunc: np.ufunc, dtype: np.dtype[Any]) -> Array:
    """The value that `ufunc` leaves every other value of `dtype` alone with."""
    if ufunc not in (np.maximum, np.minimum):
        return np.asarray(ufunc.identity).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(ufunc is np.minimum)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.asarray(limits.min if ufunc is np.maximum else limits.max, dtype)
    return np.asarray(-np.inf if ufunc is np.maximum else np.inf, dtype)


def is_associative_selection(plans: Plans, computation: Computation) -> bool:
    """Whether a reducing computation is known to be associative because it only compares.

    What only compares and selects (argmax, say) depends on the order of its arguments alone: it is
    associative if it is on all triples of a few values in every possible order. True for none
    with more accumulators than two, with two of one type, with complex numbers or constants.
    """
    shapes = [parameter.shape for parameter in computation.parameters]
    count = len(shapes) // 2
    types = [shape.element_type for shape in shapes[:count]]
    if not (
        count <= _MOST_SAMPLED_ACCUMULATORS
        and len(set(types)) == count
        and not any(shape.element_type and shape.element_type.kind == "complex" for shape in shapes)
        and all(map(_only_compares, computation.instructions))
        and plans.ask(only_elementwise, computation)
    ):
        return False
    samples = [_samples(dtype_of_shape(shape)) for shape in shapes[:count]]
    values = list(product(*(range(len(sample)) for sample in samples)))
    picks = np.array(values).T
    every = [sample[pick] for sample, pick in zip(samples, picks, strict=True)]
    first = [value[:, None, None] for value in every]
    second = [value[None, :, None] for value in every]
    third = [value[None, None, :] for value in every]
    apply = partial(combine, plans, computation)
    left, right = apply(apply(first, second), third), apply(first, apply(second, third))
    return all(map(_identical, left, right))


def _only_compares(instruction: Instruction) -> bool:
    return instruction.opcode in _ORDER_ONLY or (
        instruction.opcode in _LOGIC and instruction.shape.type_name == "pred"
    )


def _samples(dtype: np.dtype[Any]) -> Array:
    if dtype.kind == "b":
        return np.array([False, True])
    is_float = np.asarray(0.5).astype(dtype) != 0
    return np.array(_FLOAT_SAMPLES if is_float else _INTEGER_SAMPLES).astype(dtype)


def _identical(a: Array, b: Array) -> bool:
    """Whether two arrays are equal, NaN to NaN, minus zero not to zero."""
    if a.dtype.kind not in "biu":
        a, b = a.astype(np.float64), b.astype(np.float64)
        if not np.array_equal(np.signbit(a) & ~np.isnan(a), np.signbit(b) & ~np.isnan(b)):
            return False
        return np.array_equal(a, b, equal_nan=True)
    return np.array_equal(a, b)
