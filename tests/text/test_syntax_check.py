"""Reading everything in a text finds every malformed value, and says where it is."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloSyntaxError
from hloopt.text import parse_module, roundtrip_text
from hloopt.text.syntax_check import check_syntax
from hloopt.verifier import verify_module

COMPUTATIONS = """HloModule m
r { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY e {
  p = f32[4] parameter(0)
  i = s32[] parameter(1)
"""


@pytest.mark.parametrize(
    ("instruction", "column", "message"),
    [
        ("s = f32[4] negate(p), metadata={op_nam=\"x\"}", 39, "metadata has no 'op_nam'"),
        ("s = s4[] constant(8)", 26, "8 is out of the range of s4"),
        ("s = f32[4] negate(p, p)", 8, "negate expects 1 operands, but has 2 operands"),
        ("s = f32[4] negate(p), direction=EQ", 8, "negate has no attribute 'direction'"),
        ("s = f32[4] iota()", 8, "iota needs the attribute 'iota_dimension'"),
        ("s = f32[4,4] broadcast(p)", 8, "broadcast of an array needs the attribute"),
        ("s = f32[4] dynamic-reshape()", 8, "dynamic-reshape expects at least 1 operands"),
        ("s = f32[4] dynamic-slice(p, i, i), dynamic_slice_sizes={4}", 8, "expects 2 operands"),
        ("s = f32[] reduce(p), dimensions={0}, to_apply=r", 8, "every input has its initial value"),
        ("s = (f32[4]) tuple(p, p)", 8, "tuple expects 1 operands, but has 2 operands"),
        (
            "s = f32[4] all-reduce(p), to_apply=r, use_global_device_ids=true", 8,
            "without channel_id",
        ),
        (
            's = f32[4] custom-call(p), custom_call_target="x", operand_layout_constraints={}', 8,
            "expected 1 operand layout constraints, 0 given",
        ),
        (
            's = f32[4] custom-call(p), custom_call_target="x", '
            "operand_layout_constraints={f32[5]{0}}", 8, "does not fit operand 0",
        ),
        ("s = f32[] parameter(2), parameter_replication={true,false}", 8, "2 values for 1 arrays"),
        ("s = f32[4] negate(p), sharding={devices=[2]0,1,2 foo}", 39, "unknown sharding 'foo'"),
    ],
)  # fmt: skip
def test_a_malformed_value_has_a_place(instruction: str, column: int, message: str) -> None:
    text = f"{COMPUTATIONS}  ROOT {instruction}\n}}\n"
    with pytest.raises(HloSyntaxError) as caught:
        roundtrip_text(text)
    assert message in caught.value.message
    assert caught.value.location == (6, column)
    errors = verify_module(parse_module(text))
    assert any(message in error.message for error in errors)


def test_parameters_are_numbered_without_gaps() -> None:
    with pytest.raises(HloSyntaxError, match="neither gaps nor duplicates"):
        check_syntax(parse_module("ENTRY e {\n  ROOT p = f32[] parameter(1)\n}"))


def test_an_alias_is_of_a_part_of_the_result() -> None:
    text = (
        "HloModule m, input_output_alias={ {3}: (0, {}) }\nENTRY e { ROOT p = f32[] parameter(0) }"
    )
    with pytest.raises(HloSyntaxError, match=r"has no part \{3\}") as caught:
        roundtrip_text(text)
    assert caught.value.location == (1, 14)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ("ROOT n = f32[4] negate(f32[4] negate(p, p))", (6, 8)),  # has no name of its own
        ("x.01 = f32[] constant(1)\n  ROOT x.1 = f32[4] negate(p, p)", (7, 8)),  # is renamed
        ("s = ((f32[4]), f32[4]) negate-start(p), direction=EQ\n"
         "  ROOT d = f32[4] negate-done(s)", (6, 3)),  # is a part of the start
    ],
)  # fmt: skip
def test_what_has_another_name_than_in_the_text_is_found_all_the_same(
    body: str, place: tuple[int, int]
) -> None:
    with pytest.raises(HloSyntaxError) as caught:
        roundtrip_text(f"{COMPUTATIONS}  {body}\n}}\n")
    assert caught.value.location == place
