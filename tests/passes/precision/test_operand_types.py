"""Dots and convolutions whose operands, or results, get another element type."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, run_equal, shown


def dot(a: str, b: str, result: str) -> str:
    return f"""HloModule m
ENTRY e {{
  a = {a}[2,3] parameter(0)
  b = {b}[3,4] parameter(1)
  ROOT d = {result}[2,4] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""


@pytest.mark.parametrize(
    ("types", "converted"),
    [
        (("s8", "s8", "s32"), ["a", "b"]),
        (("u8", "s16", "s32"), ["a", "b"]),
        (("bf16", "f32", "f32"), ["a"]),
        (("f16", "f16", "bf16"), ["a", "b"]),  # a wider range of exponents is higher
        (("s32", "s32", "f16"), ["a", "b"]),  # floats are above integers
        (("u8", "u8", "s8"), ["a", "b"]),  # signed is above unsigned
    ],
)
def test_operands_get_the_type_of_the_result(
    types: tuple[str, str, str], converted: list[str]
) -> None:
    module = run_checked("operand_upcaster", dot(*types))
    lines = [line for line in shown(module.entry) if " convert(" in line]
    assert [line.rpartition("(")[2].rstrip(")") for line in lines] == converted


def test_an_unused_pair_of_converts_is_not_made() -> None:
    assert reasons_to_stay("operand_upcaster", dot("f32", "f32", "f32")) == []


def test_a_result_of_lower_precision_stays() -> None:
    assert reasons_to_stay("operand_upcaster", dot("bf16", "bf16", "f16")) == [
        "convert-operands: its operands give bf16, which has a higher precision than f16"
    ]


@pytest.mark.parametrize(("name", "rule"), [
    ("operand_upcaster", "convert-operands"), ("result_caster", "convert-result"),
])  # fmt: skip
def test_the_filter_of_the_user(name: str, rule: str) -> None:
    text = dot("s8", "s8", "s32") if name == "operand_upcaster" else dot("bf16", "bf16", "s32")
    assert reasons_to_stay(name, text, extra_filter=lambda _: False) == [
        f"{rule}: extra_filter leaves it out"
    ]
    run_checked(name, text, extra_filter=lambda _: True)


def test_a_convolution_of_integers() -> None:
    text = """HloModule m
ENTRY e {
  a = s8[1,4,1] parameter(0)
  b = s8[2,1,1] parameter(1)
  ROOT c = s32[1,3,1] convolution(a, b), window={size=2}, dim_labels=b0f_0io->b0f
}"""
    module = run_equal("operand_upcaster", text)
    assert module.entry.root.operands[0].shape.type_name == "s32"


def test_the_result_is_converted_from_the_higher_type() -> None:
    module = run_checked("result_caster", dot("f16", "f32", "f16"))
    assert shown(module.entry)[-2:] == [
        "d.1 = f32[2,4] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "ROOT convert = f16[2,4] convert(d.1)",
    ]


@pytest.mark.parametrize("types", [("bf16", "f32", "f64"), ("s8", "s8", "s32")])
def test_a_result_of_higher_precision_is_not_cast(types: tuple[str, str, str]) -> None:
    assert reasons_to_stay("result_caster", dot(*types)) == []
