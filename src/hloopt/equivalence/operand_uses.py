"""Uses of operands: an operation moves, sums up, indexes with, or takes roots of their elements."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from hloopt.ir.attributes.values import parse_dim_labels, parse_ints
from hloopt.ir.custom_targets import IDENTITIES, custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

MOVES: dict[Opcode, tuple[int, ...]] = {
    **dict.fromkeys(
        (
            *(Opcode.COPY, Opcode.BITCAST, Opcode.RESHAPE, Opcode.TRANSPOSE, Opcode.BROADCAST),
            *(Opcode.SLICE, Opcode.REVERSE, Opcode.DYNAMIC_SLICE, Opcode.GATHER, Opcode.DOMAIN),
            *(Opcode.ADD_DEPENDENCY, Opcode.REDUCE_PRECISION, Opcode.ALL_TO_ALL),
            *(Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_BROADCAST, Opcode.OPT_BARRIER),
        ),
        (0,),
    ),
    Opcode.DYNAMIC_UPDATE_SLICE: (0, 1),
    Opcode.SELECT: (1, 2),
    Opcode.CLAMP: (1,),
}
"""By opcode that gives elements of operands as they are: which operands."""
ROOTS = frozenset((Opcode.SQRT, Opcode.RSQRT, Opcode.LOG))
"""Not numbers for negative operands."""
INDEXED = frozenset(
    (
        *(Opcode.GATHER, Opcode.SCATTER, Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE),
        Opcode.RAGGED_DOT,
    )
)
SIZED = frozenset(
    (
        *(Opcode.SET_DIMENSION_SIZE, Opcode.DYNAMIC_RESHAPE, Opcode.RAGGED_ALL_TO_ALL),
        *(Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_PERMUTE_START, Opcode.SEND),
    )
)


def is_integral(instruction: Instruction) -> bool:
    """Whether an array has integers or truth values."""
    element = instruction.shape.element_type
    return element is not None and element.kind in ("signed", "unsigned", "pred")


def is_scalar(instruction: Instruction) -> bool:
    """Whether all elements are the same number."""
    while instruction.opcode in (Opcode.BROADCAST, Opcode.RESHAPE, Opcode.CONVERT, Opcode.COPY):
        instruction = instruction.operands[0]
    return instruction.shape.is_scalar


def is_identity(instruction: Instruction) -> bool:
    """Whether a custom call gives its operand back."""
    return custom_call_target(instruction) in IDENTITIES


def fan_ins(instruction: Instruction) -> tuple[int, int]:
    """The number of products that are summed up for an element of a contraction, for either
    operand."""
    attributes = instruction.attributes
    if not all(operand.shape.is_array for operand in instruction.operands[:2]):
        return 1, 1  # a sparse one comes with its indices
    left, right = (operand.shape.dimensions for operand in instruction.operands[:2])
    if instruction.opcode is Opcode.CONVOLUTION:
        output = parse_dim_labels(attributes["dim_labels"]).kernel_output_feature_dimension
        count = prod(right) // max(1, right[output])
        return count, count
    count = prod(left[d] for d in parse_ints(attributes.get("lhs_contracting_dims", "{}")))
    return count, count


def bounds(instruction: Instruction) -> Iterator[tuple[int, int]]:
    """By operand that has indices, the elements along the dimension that they are for."""
    opcode, operands = instruction.opcode, instruction.operands
    if opcode is Opcode.RAGGED_DOT:
        yield 2, 0
        return
    if opcode in (Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE):
        first = 1 if opcode is Opcode.DYNAMIC_SLICE else 2
        for number in range(first, len(operands)):
            dimension = number - first
            is_scalar = operands[number].shape.is_scalar
            yield number, operands[0].shape.dimensions[dimension] if is_scalar else 0
        return
    number = 1 if opcode is Opcode.GATHER else len(operands) // 2
    name = "start_index_map" if opcode is Opcode.GATHER else "scatter_dims_to_operand_dims"
    dimensions = [operands[0].shape.dimensions[d] for d in parse_ints(instruction.attributes[name])]
    yield number, min(dimensions, default=0)
