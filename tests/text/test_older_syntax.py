"""Modules in newer syntax, printed for the older reader."""

from __future__ import annotations

import pytest

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.opcode import Opcode
from hloopt.text import PrintOptions, parse_module, print_module

OLDER = PrintOptions.formatted()._replace(older_syntax=True)
KEPT = PrintOptions.keep()._replace(older_syntax=True)
WRAPPED = """w {
  a = f32[4] parameter(0)
  b = s32[4] parameter(1)
  ROOT r = f32[4] custom-call(a, b), custom_call_target="x"
}
"""


def older(body: str, header: str = "", options: PrintOptions = OLDER) -> str:
    text = f"HloModule m{header}\n{WRAPPED}ENTRY e {{\n  p = f32[4] parameter(0)\n{body}\n}}\n"
    return print_module(parse_module(text), options)


def test_operands_with_an_index_are_instructions() -> None:
    body = (
        "  c = s32[] constant(1)\n  z = (s32[]) tuple(c)\n"
        "  t = (f32[4], (s32[])) tuple(p, z)\n  ROOT r = s32[] negate(t#1#0)"
    )
    for options in (OLDER, KEPT):
        text = older(body, options=options)
        assert "#" not in text
        assert "get-tuple-element(%t), index=1" in text


def test_debug_attributes_and_implied_flags_are_left_out() -> None:
    text = older(
        "  ROOT k = (f32[2], s32[2]) topk(p), k=2, is_stable=true",
        ', debug_attributes={{"p"}:({callback_id=1})}',
    )
    assert "debug_attributes" not in text
    assert "is_stable" not in text
    assert "topk(%p), k=2, largest=true" in text


def test_late_operands_are_bound_by_a_start_behind_them() -> None:
    body = """  s = ((f32[4]), (), u32[]) async-start(p), calls=w
  q = s32[4] parameter(1)
  n = s32[4] negate(q)
  u = ((f32[4], s32[4]), f32[4], u32[]) async-update(s, n)
  ROOT d = f32[4] async-done(u)"""
    text = older(body, ", is_scheduled=true")
    again = parse_module(text)
    start = next(again.instructions(Opcode.ASYNC_START))
    update = next(again.instructions(Opcode.ASYNC_UPDATE))
    assert [operand.name for operand in start.operands] == ["p", "n"]
    assert start.shape.text == "((f32[4]{0}, s32[4]{0}), f32[4]{0}, u32[])"
    assert update.shape is start.shape
    assert update.operands == [start]
    assert print_module(parse_module(older(body, options=KEPT)), OLDER)


def test_a_module_without_newer_syntax_keeps_its_text() -> None:
    body = "  ROOT n   =  f32[4]  negate(p)"
    assert body in older(body, options=KEPT)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  ROOT k = (f32[2], s32[2]) topk(p), k=2, is_stable=false", "is_stable=false"),
        (
            "  ROOT n = f32[4] negate(p), sharding={mesh['x'=2], [{}], unreduced=max{'x'}}",
            "an unreduced sharding that is not a sum",
        ),
        (
            "  q = s32[4] parameter(1)\n  s = ((f32[4]), (), u32[]) async-start(p), calls=w\n"
            "  g = u32[] get-tuple-element(s), index=2\n"
            "  u = ((f32[4], s32[4]), f32[4], u32[]) async-update(s, q)\n"
            "  ROOT d = f32[4] async-done(u)",
            "used in several ways",
        ),
    ],
)
def test_what_the_older_syntax_cannot_say_is_an_error_with_a_place(body: str, message: str) -> None:
    with pytest.raises(HloVerifyError, match=message) as caught:
        older(body)
    assert caught.value.location
