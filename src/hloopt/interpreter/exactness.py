"""Operations that round floats, and those that hand them on as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hloopt.interpreter.values import Array, computing_type, float_info, widened
from hloopt.ir.custom_targets import BLOCK_SCALED_DOTS, custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape

_MOVES = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.COPY),
        *(Opcode.BITCAST, Opcode.BROADCAST, Opcode.CONCATENATE, Opcode.DYNAMIC_RESHAPE),
        *(Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE, Opcode.GATHER, Opcode.PAD),
        *(Opcode.RESHAPE, Opcode.REVERSE, Opcode.SELECT, Opcode.SLICE, Opcode.TRANSPOSE),
        *(Opcode.ALL_GATHER, Opcode.ALL_TO_ALL, Opcode.COLLECTIVE_PERMUTE, Opcode.COPY_START),
        *(Opcode.COPY_DONE, Opcode.ALL_GATHER_START, Opcode.ALL_GATHER_DONE, Opcode.IOTA),
        *(Opcode.COLLECTIVE_PERMUTE_START, Opcode.COLLECTIVE_PERMUTE_DONE, Opcode.CLAMP),
        *(Opcode.COLLECTIVE_BROADCAST, Opcode.RAGGED_ALL_TO_ALL, Opcode.BITCAST_CONVERT),
        *(Opcode.OPT_BARRIER, Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.FUSION),
        *(Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE, Opcode.AFTER_ALL),
        *(Opcode.SORT, Opcode.MAXIMUM, Opcode.MINIMUM, Opcode.SEND, Opcode.SEND_DONE),
        *(Opcode.RECV, Opcode.RECV_DONE, Opcode.NEGATE, Opcode.ABS),
    )
)
"""Opcodes that give every float they take on as it is, or rounded in no way."""

_EXACT = _MOVES | frozenset(
    (
        *(Opcode.FLOOR, Opcode.CEIL, Opcode.ROUND_NEAREST_AFZ, Opcode.ROUND_NEAREST_EVEN),
        *(Opcode.SIGN, Opcode.REAL, Opcode.IMAG, Opcode.COMPLEX, Opcode.IS_FINITE),
        *(Opcode.REDUCE_PRECISION, Opcode.STOCHASTIC_CONVERT, Opcode.DOMAIN, Opcode.ADD_DEPENDENCY),
        *(Opcode.RNG, Opcode.RNG_BIT_GENERATOR, Opcode.RNG_GET_AND_UPDATE_STATE),
        *(Opcode.CUSTOM_CALL, Opcode.INFEED, Opcode.OUTFEED, Opcode.TOPK),
        *(Opcode.ALL_REDUCE_START, Opcode.SET_DIMENSION_SIZE),
    )
)
"""Those and the opcodes whose results no correct program has a little off."""
_NARROWED = 16
"""Bits of the floats that compilers may keep in more bits for a while."""


def only_moves_data(module: Module) -> bool:
    """Whether no float of a module is ever rounded: its outputs can be compared bit by bit."""
    return all(
        instruction.opcode in _MOVES or not has_floats(instruction.shape)
        for instruction in module.instructions()
    )


def has_floats(shape: Shape) -> bool:
    """Whether an array of a shape is of floats or complex numbers."""
    return any(
        leaf.element_type is not None and leaf.element_type.kind in ("float", "complex")
        for leaf in shape.leaves()
    )


def rounds(instruction: Instruction) -> bool:
    """Whether a correct compiler may give slightly other floats for an operation."""
    if not has_floats(instruction.shape):
        return False
    if instruction.opcode in _EXACT:
        return custom_call_target(instruction) in BLOCK_SCALED_DOTS
    if instruction.called:  # a reduce that picks the largest, a scatter that writes over
        return any(rounds(step) for called in instruction.called for step in called.instructions)
    if instruction.opcode is not Opcode.CONVERT:
        return True
    before, after = instruction.operands[0].shape.element_type, instruction.shape.element_type
    assert before is not None
    assert after is not None
    return before.is_floating and _NARROWED <= after.bits < before.bits


def depends_on_layout(instruction: Instruction) -> bool:
    """Whether NumPy may round an operation in another way where its operands lie in memory in
    another way: sums in any order, and functions that it computes by several numbers at a time."""
    return instruction.opcode in _BY_LAYOUT and rounds(instruction)


_BY_LAYOUT = frozenset(
    (
        *(Opcode.REDUCE, Opcode.REDUCE_WINDOW, Opcode.DOT, Opcode.RAGGED_DOT, Opcode.SCALED_DOT),
        *(Opcode.CONVOLUTION, Opcode.FFT, Opcode.CHOLESKY, Opcode.TRIANGULAR_SOLVE, Opcode.SCAN),
        *(Opcode.BATCH_NORM_TRAINING, Opcode.BATCH_NORM_INFERENCE, Opcode.BATCH_NORM_GRAD),
        *(Opcode.SELECT_AND_SCATTER, Opcode.SCATTER, Opcode.CUSTOM_CALL, Opcode.MAP),
        *(Opcode.ACOS, Opcode.ACOSH, Opcode.ASIN, Opcode.ASINH, Opcode.ATAN2, Opcode.ATANH),
        *(Opcode.CBRT, Opcode.COSH, Opcode.COSINE, Opcode.ERF, Opcode.EXPONENTIAL),
        *(Opcode.EXPONENTIAL_MINUS_ONE, Opcode.LOG, Opcode.LOG_PLUS_ONE, Opcode.LOGISTIC),
        *(Opcode.POWER, Opcode.RSQRT, Opcode.SINE, Opcode.SINH, Opcode.TAN, Opcode.TANH),
        *(Opcode.REMAINDER, Opcode.RNG),
    )
)


def rounded_types(module: Module) -> set[str]:
    """The names of the float types that a module rounds to. O(instructions)."""
    return {
        leaf.type_name
        for instruction in module.instructions()
        if rounds(instruction)
        for leaf in instruction.shape.leaves()
        if has_floats(leaf)
    }


# -- which results of an operation are rounded ----------------------------------------------------


def is_inexact(
    instruction: Instruction, result: Array, operands: Sequence[Array], *, by_bits: bool = True
) -> Array:
    """The elements of a result that are not what exact arithmetic gives.

    For functions such as `tanh` that is told by the last bits, which may err for one in eight, in
    bf16 for one in two; without `by_bits` all of their results count.
    """
    opcode = instruction.opcode
    if result.dtype.kind == "c":
        return np.asarray(True)
    if opcode is Opcode.CONVERT:
        return np.asarray(result.astype(operands[0].dtype) != operands[0])
    if opcode in (Opcode.ADD, Opcode.SUBTRACT):
        return _sum_is_inexact(instruction, result, operands)
    if result.dtype != np.float64 and opcode in (Opcode.MULTIPLY, Opcode.DIVIDE, Opcode.SQRT):
        x, *others = (operand.astype(np.float64) for operand in operands)
        found = result.astype(np.float64)  # twice the bits: products are exact
        if opcode is Opcode.MULTIPLY:
            return np.asarray(x * others[0] != found)
        return np.asarray(found * (found if opcode is Opcode.SQRT else others[0]) != x)
    if opcode in _ONE_AT_ZERO:
        return np.asarray(operands[0] != 0)
    return has_last_bits(result) if by_bits else np.asarray(True)


_ONE_AT_ZERO = (Opcode.EXPONENTIAL, Opcode.COSINE, Opcode.COSH)
"""Functions that give 1 for a small number, too, though they are not 1 there."""


def _sum_is_inexact(instruction: Instruction, result: Array, operands: Sequence[Array]) -> Array:
    """By the error of the sum, which the same type can hold (Knuth)."""
    a, b, total = (widened(array) for array in (*operands, result))
    if instruction.opcode is Opcode.SUBTRACT:
        b = -b
    part = total - a
    return np.asarray((a - (total - part)) + (b - part) != 0)


def has_last_bits(array: Array) -> Array:
    """The floats that have one of their last bits set, as hardly any number does that is exact."""
    bits = np.asarray(array, order="C").view(f"i{array.dtype.itemsize}")
    mask = {1: 1, 2: 3 if array.dtype.name == "float16" else 1}.get(array.dtype.itemsize, 7)
    return np.asarray(bits & mask != 0)


def sums_are_exact(factors: Sequence[Array], terms: int) -> bool:
    """Whether sums of so many elements, or of products of elements of several arrays, are exact in
    any order: whether all are small multiples of one power of two."""
    span = float(terms)
    for factor in factors:
        if factor.dtype.kind == "c":
            return False
        numbers = np.abs(widened(factor).astype(np.float64).reshape(-1))
        numbers = numbers[numbers > 0]
        if not np.isfinite(numbers).all():
            return False
        if not numbers.size:
            return True
        mantissas, exponents = np.frexp(numbers)
        whole = (mantissas * 2.0**53).astype(np.int64)
        lowest = (whole & -whole).astype(np.float64) * 2.0 ** (exponents - 53.0)
        span *= float(numbers.max() / lowest.min())
    dtype = factors[0].dtype
    if computing_type(dtype).kind in "biu":
        dtype = np.dtype(np.float64)  # what integers are summed up in where floats come of them
    return span <= 2.0 / float(float_info(dtype).eps)
