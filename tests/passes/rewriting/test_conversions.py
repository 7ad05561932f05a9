"""Converts that change places with reductions, against all values of small integer types."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from hloopt.ir import Instruction
from hloopt.ir.reduction_kind import ReductionKind
from hloopt.ir.shapes.element_type import ELEMENT_TYPES, ElementType
from hloopt.passes.rewriting.conversions import (
    can_be_undone,
    commutes,
    is_widening,
    reduction_of_type,
)
from hloopt.text import parse_module

SMALL = ("s2", "u2", "s4", "u4")
OPERATIONS: dict[ReductionKind, Callable[[int, int], int]] = {
    ReductionKind.SUM: lambda a, b: a + b,
    ReductionKind.PRODUCT: lambda a, b: a * b,
    ReductionKind.MIN: min,
    ReductionKind.MAX: max,
}
INTEGERS = [*product(SMALL, SMALL, OPERATIONS)]


def convert(source: str, target: str) -> Instruction:
    """A convert between two types whose name and operand say nothing of them."""
    module = parse_module(
        f"HloModule m\nENTRY e {{ p = {source}[4] parameter(0) ROOT c = {target}[4] convert(p) }}"
    )
    return module.entry.root


def wrapped(value: int, kind: ElementType) -> int:
    value %= 1 << kind.bits
    is_negative = kind.kind == "signed" and value >> (kind.bits - 1)
    return value - (1 << kind.bits) if is_negative else value


def all_pairs(kind: ElementType) -> list[tuple[int, int]]:
    values = [wrapped(bits, kind) for bits in range(1 << kind.bits)]
    return [*product(values, values)]


@pytest.mark.parametrize(("source", "target", "kind"), INTEGERS)
def test_integers_are_converted_before_sums_and_products_where_all_values_allow_it(
    source: str, target: str, kind: ReductionKind
) -> None:
    one, other, reduce = ELEMENT_TYPES[source], ELEMENT_TYPES[target], OPERATIONS[kind]
    holds = all(
        wrapped(wrapped(reduce(a, b), one), other)
        == wrapped(reduce(wrapped(a, other), wrapped(b, other)), other)
        for a, b in all_pairs(one)
    )
    wraps_around = kind in (ReductionKind.SUM, ReductionKind.PRODUCT)
    assert commutes(convert(source, target), kind) is (holds and wraps_around)


@pytest.mark.parametrize(("source", "target", "kind"), INTEGERS)
def test_a_convert_of_integers_can_be_undone_where_all_values_allow_it(
    source: str, target: str, kind: ReductionKind
) -> None:
    one, other, reduce = ELEMENT_TYPES[source], ELEMENT_TYPES[target], OPERATIONS[kind]

    def back(value: int) -> int:
        return wrapped(wrapped(value, other), one)

    holds = all(
        wrapped(wrapped(reduce(a, b), one), other)
        == wrapped(wrapped(reduce(back(a), back(b)), one), other)
        for a, b in all_pairs(one)
    )
    assert can_be_undone(convert(source, target), kind) is holds


@pytest.mark.parametrize("kind", list(ReductionKind))
@pytest.mark.parametrize(
    ("source", "target", "may_move"),
    [
        *(("f32", "bf16", True), ("bf16", "f32", True), ("f16", "bf16", True)),
        *(("f32", "s32", False), ("s32", "f32", False), ("u8", "f64", False)),
        *(("pred", "s32", False), ("s32", "pred", False), ("pred", "f32", False)),
        *(("f32", "c64", False), ("c64", "f32", False), ("f64", "u8", False)),
    ],
)
def test_converts_between_other_types_move_only_among_floating_point_numbers(
    source: str, target: str, may_move: bool, kind: ReductionKind
) -> None:
    assert commutes(convert(source, target), kind) is may_move
    assert can_be_undone(convert(source, target), kind) is may_move


def test_only_floating_point_types_with_more_bits_of_all_kinds_are_wider() -> None:
    floats = ("bf16", "f16", "f32", "f64", "s32")
    wider = {(a, b) for a, b in product(floats, floats) if is_widening(convert(a, b))}
    assert wider == {
        *(("bf16", "f32"), ("bf16", "f64"), ("f16", "f32"), ("f16", "f64"), ("f32", "f64"))
    }


REDUCTION = """HloModule m
add { x = f32[] parameter(0) y = f32[] parameter(1) ROOT r = f32[] add(x, y) }
ENTRY e {
  p = f32[4] parameter(0)
  k = f32[] constant(0)
  ROOT r = f32[] reduce(p, k), dimensions={0}, to_apply=add
}
"""


def test_a_reduction_of_another_type_is_a_copy() -> None:
    module = parse_module(REDUCTION)
    add = module.computations["add"]
    copy = reduction_of_type(add, "bf16")
    assert copy is not add
    assert [i.shape.text for i in copy.instructions] == ["bf16[]"] * 3
    assert copy.root.operands == copy.parameters
    assert [i.shape.text for i in add.instructions] == ["f32[]"] * 3
    assert module.entry.root.called == (add,)


def test_a_reduction_of_its_own_type_is_itself() -> None:
    module = parse_module(REDUCTION)
    add = module.computations["add"]
    assert reduction_of_type(add, "f32") is add
    assert module.is_pristine
