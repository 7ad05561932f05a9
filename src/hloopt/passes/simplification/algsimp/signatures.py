"""Conditions on opcodes and shapes alone: `signature` of rules, asked once for all that agree.

Each is necessary for its rule; where layouts or attributes decide, the rule looks further. The
operation of an asynchronous one that is written short has no operands.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, compatible
from hloopt.passes.rewriting.rules.pattern import INDEXED
from hloopt.passes.simplification.algsimp.shapes import has_zero, without_ones


def first_leaf(shape: Shape) -> Shape:
    """The first array of a tuple; an array itself."""
    return (shape.leaves() or [shape])[0] if shape.is_tuple else shape


def is_as_its_operand(root: Instruction) -> bool:
    """Whether the result has the shape of the first operand, layouts aside."""
    return bool(root.operands) and compatible(root.shape, root.operands[0].shape)


def reads(*opcodes: str) -> Callable[[Instruction], bool]:
    """Whether the first operand has one of these opcodes."""
    allowed = frozenset(map(Opcode, opcodes))
    return lambda root: bool(root.operands) and root.operands[0].opcode in allowed


def takes_whole(root: Instruction) -> bool:
    """Whether a dynamic-slice takes, or a dynamic-update-slice changes, a dimension whole."""
    if not root.operands:
        return False
    part = root.shape if root.opcode is Opcode.DYNAMIC_SLICE else root.operands[1].shape
    whole = root.operands[0].shape.dimensions
    return any(size == taken for size, taken in zip(whole, part.dimensions, strict=False))


def is_typed_as_its_operand(root: Instruction) -> bool:
    """Whether the result has the element type of the operand."""
    return root.shape.element_type is root.operands[0].shape.element_type


def is_empty(root: Instruction) -> bool:
    """Whether the result has no element."""
    return has_zero(root.shape)


def is_or_reads_empty(root: Instruction) -> bool:
    """Whether the first result or one of the first two operands has no element."""
    return any(has_zero(first_leaf(x.shape)) for x in (root, *root.operands[:2]))


def is_tuple(root: Instruction) -> bool:
    return root.shape.is_tuple


def is_rank_0(root: Instruction) -> bool:
    """Whether the first operand is one element without dimensions."""
    return bool(root.operands) and not root.operands[0].shape.dimensions


def is_several_elements(root: Instruction) -> bool:
    """Whether the result is an array of two elements or more."""
    return root.shape.is_array and root.shape.element_count() > 1


def is_integer_vector(root: Instruction) -> bool:
    """Whether the result has rank 1, two elements or more, and a type of integers."""
    kind = root.shape.element_type
    is_integral = kind is not None and kind.kind in ("signed", "unsigned")
    return is_integral and root.shape.rank == 1 and root.shape.dimensions[0] > 1


def repeats_nothing(root: Instruction) -> bool:
    """Whether the first result has as many elements as the first operand."""
    count = first_leaf(root.shape).element_count()
    return bool(root.operands) and root.operands[0].shape.element_count() == count


def has_dimensions(root: Instruction) -> bool:
    """Whether the result is not a scalar."""
    return bool(root.shape.dimensions)


def has_one(root: Instruction) -> bool:
    """Whether the result has a dimension of size 1."""
    return 1 in root.shape.dimensions


def is_one_or_empty(root: Instruction) -> bool:
    """Whether the result has a dimension of size 1 or 0."""
    return not {0, 1}.isdisjoint(root.shape.dimensions)


def reads_one(root: Instruction) -> bool:
    """Whether the first operand has a dimension of size 1."""
    return 1 in root.operands[0].shape.dimensions


def reads_empty(root: Instruction) -> bool:
    """Whether the first operand has no element."""
    return has_zero(root.operands[0].shape)


def reads_pred(root: Instruction) -> bool:
    """Whether the first operand has truth values."""
    return root.operands[0].shape.type_name == "pred"


def reads_ones(root: Instruction) -> bool:
    """Whether one of the first two operands has a dimension of size 1."""
    return any(1 in operand.shape.dimensions for operand in root.operands[:2])


def is_inexact(root: Instruction) -> bool:
    """Whether the result has floating-point or complex numbers."""
    kind = root.shape.element_type
    return kind is not None and kind.kind in ("float", "complex")


def is_outer_product(dot: Instruction) -> bool:
    """Whether a dot may have no contracting dimension: each operand is repeated in the result."""
    result = Counter(dot.shape.dimensions)
    return all(Counter(operand.shape.dimensions) <= result for operand in dot.operands)


def has_vector(dot: Instruction) -> bool:
    """Whether an operand of a dot may have no free dimension: then the other only loses some."""
    result = Counter(dot.shape.dimensions)
    return any(result < Counter(operand.shape.dimensions) for operand in dot.operands)


# -- several operands -------------------------------------------------------------------------


def may_read_empty(root: Instruction) -> bool:
    """Whether one of all operands may have no element."""
    return len(root.operands) > INDEXED or any(has_zero(o.shape) for o in root.operands)


def may_read(opcode: Opcode, count: int = 1) -> Callable[[Instruction], bool]:
    """Whether so many of all operands may have this opcode."""

    def holds(root: Instruction) -> bool:
        operands = root.operands
        return len(operands) > INDEXED or [o.opcode for o in operands].count(opcode) >= count

    return holds


def may_repeat_ones(root: Instruction) -> bool:
    """Whether all operands may be one value, which has a dimension of size 1."""
    first, *others = root.operands[:INDEXED]
    return 1 in first.shape.dimensions and all(
        other.opcode is first.opcode and other.shape is first.shape for other in others
    )


def may_have_constant_offsets(dynamic_slice: Instruction) -> bool:
    """Whether all offsets of a dynamic-slice may be constants."""
    return all(o.opcode is Opcode.CONSTANT for o in dynamic_slice.operands[1:INDEXED])


def permutes_ones(transpose: Instruction) -> bool:
    """Whether a transpose may move dimensions of size 1 alone: the others are as they were."""
    before, after = transpose.operands[0].shape.dimensions, transpose.shape.dimensions
    return 1 in after and without_ones(before) == without_ones(after)


def moves_a_one(before: Shape, after: Shape) -> bool:
    """Whether shapes agree but for at most one dimension of size 1 on each side."""
    sides = []
    for sizes in (before.dimensions, after.dimensions):
        sides.append(
            {sizes} | {(*sizes[:d], *sizes[d + 1 :]) for d, size in enumerate(sizes) if size == 1}
        )
    return not sides[0].isdisjoint(sides[1])
