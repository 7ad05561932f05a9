"""Selects between values of any shape."""

from __future__ import annotations

import pytest
from tests.properties.consistency import assert_consistent

from hloopt.ir import Instruction, Module, Opcode
from hloopt.passes.rewriting.selects import select_between, why_no_select
from hloopt.text import parse_module
from hloopt.verifier import verify_module


def shape_of(shape: str) -> Module:
    return parse_module(f"HloModule m\nENTRY e {{ ROOT p = {shape} parameter(0) }}")


@pytest.mark.parametrize(
    "shape",
    [
        *("f32[]", "f32[4]", "pred[0]", "s4[3,5]{0,1}", "c64[2]", "token[]", "()"),
        *("(f32[4], token[])", "((f32[], ()), (token[], (s32[2])))"),
    ],
)
def test_arrays_tokens_and_tuples_of_them_are_selected(shape: str) -> None:
    assert why_no_select(shape_of(shape).entry.root.shape) is None


@pytest.mark.parametrize(
    ("shape", "blamed"),
    [
        *(("f32[<=4]", "f32[<=4]{0}"), ("f32[2,<=4]", "f32[2,<=4]{1,0}"), ("opaque[]", "opaque[]")),
        ("b(f32[4])", "b(f32[4]{0})"),
        ("(f32[4], (token[], f32[<=4], f32[<=5]))", "f32[<=4]{0}"),
    ],
)
def test_other_values_are_not_selected(shape: str, blamed: str) -> None:
    reason = why_no_select(shape_of(shape).entry.root.shape)
    assert reason == f"it gives {blamed}, which select cannot"


def selected(shape: str) -> Module:
    """A module whose root selects by `p` between `yes` and `no`, parameters of a shape."""
    module = parse_module(
        f"HloModule m\nENTRY e {{ p = pred[] parameter(0) yes = {shape} parameter(1) "
        f"no = {shape} parameter(2) ROOT r = () tuple() }}"
    )
    predicate, yes, no = module.entry.parameters
    module.entry.set_root(select_between(predicate, yes, no))
    assert verify_module(module) == []
    assert_consistent(module)
    return module


def expression(value: Instruction) -> str:
    """A value as an expression of parameters; `x.0` is an element of `x`."""
    if value.opcode is Opcode.PARAMETER:
        return value.name
    operands = [expression(operand) for operand in value.operands]
    if value.opcode is Opcode.GET_TUPLE_ELEMENT:
        return f"{operands[0]}.{value.tuple_index}"
    return f"{value.opcode}({', '.join(operands)})"


@pytest.mark.parametrize(
    ("shape", "result"),
    [
        ("f32[]", "select(p, yes, no)"),
        ("f32[4,2]", "select(broadcast(p), yes, no)"),
        ("token[]", "after-all(yes, no)"),
        ("()", "tuple()"),
        (
            "(f32[], (s32[2], token[], ()), f32[2])",
            "tuple(select(p, yes.0, no.0), "
            "tuple(select(broadcast(p), yes.1.0, no.1.0), after-all(yes.1.1, no.1.1), tuple()), "
            "select(broadcast(p), yes.2, no.2))",
        ),
        (
            "((), ((f32[]), s8[]), (u8[]))",
            "tuple(tuple(), tuple(tuple(select(p, yes.1.0.0, no.1.0.0)), "
            "select(p, yes.1.1, no.1.1)), tuple(select(p, yes.2.0, no.2.0)))",
        ),
    ],
)
def test_every_leaf_is_selected_in_its_place(shape: str, result: str) -> None:
    root = selected(shape).entry.root
    assert expression(root) == result
    assert root.shape == root.parent.parameters[1].shape


def test_arrays_of_the_same_sizes_and_layout_share_a_mask() -> None:
    module = selected("(f32[2,3]{0,1}, f32[2,3]{1,0}, s8[2,3]{0,1:T(2,128)}, f32[3,2]{0,1})")
    masks = [i for i in module.entry.instructions if i.opcode is Opcode.BROADCAST]
    assert sorted(mask.shape.text for mask in masks) == [
        *("pred[2,3]{0,1}", "pred[2,3]{1,0}", "pred[3,2]{0,1}")
    ]
    assert [select.operands[0].shape.text for select in module.entry.root.operands] == [
        *("pred[2,3]{0,1}", "pred[2,3]{1,0}", "pred[2,3]{0,1}", "pred[3,2]{0,1}")
    ]
    assert {mask.attributes["dimensions"] for mask in masks} == {"{}"}
