"""The cost of an operation, by its shapes, before it runs: steps, and bytes of temporaries.

A step is what Python takes for one instruction, about a microsecond; NumPy does an operation on
ELEMENTS_PER_STEP numbers in that time. Computations applied to elements (of a reduce, sort, map, …)
are not in these figures: they count as they run (see `scalar_calls`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple

from hloopt.interpreter.values import bytes_of, computing_type, dtype_of_shape
from hloopt.ir.attributes.typed import window_of
from hloopt.ir.attributes.values import parse_dim_labels, parse_ints, parse_window
from hloopt.ir.custom_targets import BLOCK_SCALED_DOTS, custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape

ELEMENTS_PER_STEP = 1 << 10
_PRODUCTS_PER_STEP = 1 << 14
"""Of floats, which BLAS multiplies and adds."""
_OF_PYTHON = 16 * ELEMENTS_PER_STEP
"""Work that takes as long as one turn of a loop of Python's with some operations of NumPy."""
_INDEX = 8  # bytes
_MOST_COLUMNS = 1 << 24
"""Elements that a convolution lays out at a time."""
_DEPTH = 512
"""Products per element of its result that it does at a time."""


_SMALL_PRIMES = (2, 3, 5, 7, 11)
"""Lengths of transforms are split up by these."""


class Cost(NamedTuple):
    """The cost of one operation."""

    steps: int
    scratch: int
    """Bytes beside operands and result while it runs."""


def cost_of(instruction: Instruction) -> Cost:
    """The cost of one operation, dynamic dimensions at their bound. O(operands)."""
    elements = _elements(instruction.shape)
    opcode = instruction.opcode
    if opcode in _CONTROL_FLOW or any(operand.shape.is_tuple for operand in instruction.operands):
        return Cost(1, 0)  # what they call counts by itself; tuples are handed on
    if opcode in _WORK:
        work, scratch = _WORK[opcode](instruction)
    else:
        work = elements * (_SLOW_WEIGHT if opcode in _SLOW else 1)
        scratch = _widening(instruction) if opcode in _COMPUTING else 0
    return Cost(1 + max(work, 0) // ELEMENTS_PER_STEP, max(scratch, 0))


def _elements(shape: Shape) -> int:
    return sum(
        leaf.element_count()
        for leaf in shape.leaves()
        if leaf.is_array and not leaf.is_unbounded_dynamic
    )


def _operand_elements(instruction: Instruction) -> int:
    return sum(_elements(operand.shape) for operand in instruction.operands)


def _widening(instruction: Instruction) -> int:
    """Bytes of operands and result in the types they are computed in, where these are others."""
    return sum(
        _elements(shape) * computing_type(dtype_of_shape(shape)).itemsize
        for shape in (instruction.shape, *(operand.shape for operand in instruction.operands))
        if shape.is_array and _is_widened(shape)
    )


def _is_widened(shape: Shape) -> bool:
    dtype = dtype_of_shape(shape)
    return computing_type(dtype) != dtype


_CONTROL_FLOW = frozenset(
    (
        *(Opcode.CALL, Opcode.FUSION, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.MAP, Opcode.SCAN),
        *(Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE),
    )
)
_SLOW_WEIGHT = 16
_SLOW = frozenset(
    (
        *(Opcode.ACOS, Opcode.ACOSH, Opcode.ASIN, Opcode.ASINH, Opcode.ATAN2, Opcode.ATANH),
        *(Opcode.CBRT, Opcode.COSH, Opcode.COSINE, Opcode.ERF, Opcode.EXPONENTIAL),
        *(Opcode.EXPONENTIAL_MINUS_ONE, Opcode.LOG, Opcode.LOG_PLUS_ONE, Opcode.LOGISTIC),
        *(Opcode.POWER, Opcode.REMAINDER, Opcode.RSQRT, Opcode.SINE, Opcode.SINH, Opcode.TAN),
        *(Opcode.TANH, Opcode.DIVIDE, Opcode.RNG, Opcode.RNG_BIT_GENERATOR),
        *(Opcode.STOCHASTIC_CONVERT, Opcode.REDUCE_PRECISION),
    )
)
_COMPUTING = _SLOW | {
    *(Opcode.ADD, Opcode.SUBTRACT, Opcode.MULTIPLY, Opcode.MAXIMUM, Opcode.MINIMUM),
    *(Opcode.COMPARE, Opcode.CLAMP, Opcode.NEGATE, Opcode.ABS, Opcode.SQRT, Opcode.SIGN),
    *(Opcode.FLOOR, Opcode.CEIL, Opcode.ROUND_NEAREST_EVEN, Opcode.ROUND_NEAREST_AFZ),
    *(Opcode.AND, Opcode.OR, Opcode.XOR, Opcode.NOT),
}
_Work = tuple[int, int]
"""Operations on numbers, and bytes."""


def _contraction(instruction: Instruction) -> _Work:
    lhs, rhs = (operand.shape for operand in instruction.operands[:2])
    contracted = parse_ints(instruction.attributes.get("lhs_contracting_dims", "{}"))
    depth = prod(lhs.dimensions[d] for d in contracted)
    products, copied = _elements(instruction.shape) * depth, _elements(lhs) + _elements(rhs)
    if instruction.opcode is not Opcode.RAGGED_DOT:
        return _products(instruction, products, copied)
    groups = max(_elements(instruction.operands[2].shape), 1)
    (ragged,) = parse_ints(instruction.attributes["lhs_ragged_dims"])
    if ragged in contracted:
        products //= groups
    work, scratch = _products(instruction, products, copied)
    return work + groups * _OF_PYTHON, scratch


def _custom_call(instruction: Instruction) -> _Work:
    operands = instruction.operands
    if not operands or custom_call_target(instruction) not in BLOCK_SCALED_DOTS:
        return _elements(instruction.shape), 0
    values = [operand.shape for operand in operands[:2]]
    depth = (1, *values[0].dimensions)[-1]
    return _products(instruction, _elements(instruction.shape) * depth, sum(map(_elements, values)))


def _products(instruction: Instruction, products: int, copied: int) -> _Work:
    """Products of matrices: BLAS has only floats of 32 and 64 bits."""
    lhs = instruction.operands[0].shape
    dtype = computing_type(dtype_of_shape(lhs))
    is_float = dtype.kind in "fc"
    work = products * ELEMENTS_PER_STEP // _PRODUCTS_PER_STEP if is_float else products
    width = dtype.itemsize if is_float else _INDEX
    results = _elements(instruction.shape) * width
    return work + copied, results + (copied * width if _is_widened(lhs) or not is_float else 0)


def _convolution(instruction: Instruction) -> _Work:
    attributes = instruction.attributes
    base, window = (operand.shape for operand in instruction.operands[:2])
    labels = parse_dim_labels(attributes["dim_labels"])
    outputs = window.dimensions[labels.kernel_output_feature_dimension]
    dimensions = parse_window(attributes.get("window", "{}")).dimensions
    dilation = prod(d.lhs_dilate for d in dimensions)
    per_output = -(-_elements(window) // max(outputs, 1) // dilation)
    columns = min(_elements(instruction.shape) * per_output, _MOST_COLUMNS)
    copied = 2 * _elements(base) + _elements(window)
    work, scratch = _products(instruction, _elements(instruction.shape) * per_output, copied)
    width = computing_type(dtype_of_shape(base)).itemsize
    parts = -(-per_output * dilation // _DEPTH) * dilation
    return work + parts * _OF_PYTHON, scratch + columns * width


def _reduction(instruction: Instruction) -> _Work:
    return _operand_elements(instruction), _widening(instruction)


def _windows(instruction: Instruction) -> _Work:
    """Padded operands, and as many passes over them as a window can be doubled."""
    window = window_of(instruction).dimensions
    operand = instruction.operands[0].shape
    padded = 1
    for size, d in zip(operand.dimensions, window, strict=False):
        dilated = max(size - 1, 0) * d.lhs_dilate + 1
        padded *= max(dilated + d.pad_low + d.pad_high, 1)
    passes = sum(d.size.bit_length() for d in window)
    width = computing_type(dtype_of_shape(operand)).itemsize
    return padded * (passes + 1), padded * width * 2


def _sorting(instruction: Instruction) -> _Work:
    elements = _operand_elements(instruction)
    first = _elements(instruction.operands[0].shape)
    longest = max(instruction.operands[0].shape.dimensions, default=1)
    return elements * 4 * longest.bit_length(), 3 * first * _INDEX


def _transform(instruction: Instruction) -> _Work:
    elements = max(_elements(instruction.shape), _operand_elements(instruction))
    rounds = sum(map(_rounds, parse_ints(instruction.attributes["fft_length"])))
    width = max(bytes_of(instruction.shape), bytes_of(instruction.operands[0].shape))
    return elements * 2 * rounds, 3 * width


def _rounds(length: int) -> int:
    """Operations per element of a transform: the prime factors of its length, or, for large ones,
    three transforms of twice the length. O(log length)."""
    total, rest = 0, length
    for prime in _SMALL_PRIMES:
        while rest and rest % prime == 0:
            total += prime
            rest //= prime
    return total + min(rest - 1, 12 * rest.bit_length()) if rest > 1 else total


def _solver(instruction: Instruction) -> _Work:
    """A decomposition, or a solve: matrices times vectors for each row."""
    sizes = instruction.operands[0].shape.dimensions
    rows = sizes[-1] if sizes else 1
    products = _elements(instruction.shape) * rows
    return products // 4 + rows * _OF_PYTHON, 2 * bytes_of(instruction.shape)


def _indexed(instruction: Instruction) -> _Work:
    """Blocks at indices: a position for each element, or row."""
    moved = instruction.shape if instruction.opcode is Opcode.GATHER else None
    elements = _elements(moved) if moved else _elements(instruction.operands[-1].shape)
    copied = 0 if moved else bytes_of(instruction.shape)
    indices = _elements(instruction.operands[len(instruction.operands) // 2].shape)
    return 4 * elements + _elements(instruction.shape), copied + indices * _INDEX


def _normalization(instruction: Instruction) -> _Work:
    wide = _elements(instruction.operands[0].shape)
    return 8 * wide, 3 * wide * _INDEX


_WORK: dict[Opcode, Callable[[Instruction], _Work]] = {
    **dict.fromkeys((Opcode.DOT, Opcode.RAGGED_DOT, Opcode.SCALED_DOT), _contraction),
    Opcode.CUSTOM_CALL: _custom_call,
    Opcode.CONVOLUTION: _convolution,
    Opcode.REDUCE: _reduction,
    **dict.fromkeys((Opcode.REDUCE_WINDOW, Opcode.SELECT_AND_SCATTER), _windows),
    **dict.fromkeys((Opcode.SORT, Opcode.TOPK), _sorting),
    Opcode.FFT: _transform,
    **dict.fromkeys((Opcode.CHOLESKY, Opcode.TRIANGULAR_SOLVE), _solver),
    **dict.fromkeys((Opcode.GATHER, Opcode.SCATTER), _indexed),
    **dict.fromkeys(
        (Opcode.BATCH_NORM_TRAINING, Opcode.BATCH_NORM_INFERENCE, Opcode.BATCH_NORM_GRAD),
        _normalization,
    ),
}
