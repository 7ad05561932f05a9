"""Propagation through associative scans, and the one type of what they carry."""

from __future__ import annotations

import pytest
from tests.passes.precision.rounded import MATRIX_UNIT, line, run_rounded, types

from hloopt.diagnostics import PassRefused
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

NAME = "bfloat16-propagation"


def scan(body: str, after: str, associative: str = "true") -> str:
    """A scan `w` over `s`, beginning with `t`: what it gives on the way, and in the end."""
    return f"""HloModule m
    f {{ x = f32[4,4] parameter(0)
      c = f32[4,4] parameter(1)
      {body}
      ROOT r = (f32[4,4], f32[4,4]) tuple(out, next) }}
    ENTRY e {{ a = f32[3,4,4] parameter(0)
      b = f32[4,4] parameter(1)
      s = f32[3,4,4] negate(a)
      t = f32[4,4] negate(b)
      w = (f32[3,4,4], f32[4,4]) scan(s, t), dimensions={{0}}, num_carries=1,
        is_associative={associative}, to_apply=f
      w0 = f32[3,4,4] get-tuple-element(w), index=0
      w1 = f32[4,4] get-tuple-element(w), index=1
      {after} }}"""


LOW_STEPS = """low = bf16[3,4,4] convert(w0)
      ROOT result = (bf16[3,4,4], f32[4,4]) tuple(low, w1)"""
LOW_END = """low = bf16[4,4] convert(w1)
      ROOT result = (f32[3,4,4], bf16[4,4]) tuple(w0, low)"""
LOW_BOTH = """low0 = bf16[3,4,4] convert(w0)
      low1 = bf16[4,4] convert(w1)
      ROOT result = (bf16[3,4,4], bf16[4,4]) tuple(low0, low1)"""
SUM = "out = f32[4,4] add(x, c)\n next = f32[4,4] multiply(x, c)"
LARGEST = "out = f32[4,4] maximum(x, c)\n next = f32[4,4] minimum(x, c)"


def test_what_comes_out_on_the_way() -> None:
    module = run_rounded(NAME, scan(SUM, LOW_STEPS))
    assert types(module, "w", "r", "out", "next", "c", "s") == [
        *("(bf16, f32)", "(bf16, f32)", "bf16", "f32", "f32", "f32")
    ]


def test_a_carry_has_the_type_it_begins_with() -> None:
    # The sum needs the carry in full, and so the end is not rounded either.
    module = run_rounded(NAME, scan(SUM, LOW_END), changes=False)
    assert types(module, "w", "t") == ["(f32, f32)", "f32"]
    module = run_rounded(NAME, scan(LARGEST, LOW_BOTH))
    assert types(module, "w", "r", "x", "c", "s", "t") == ["(bf16, bf16)"] * 2 + ["bf16"] * 4
    module = run_rounded(NAME, scan(LARGEST, LOW_STEPS))
    assert types(module, "w", "x", "c", "t") == ["(bf16, f32)", "f32", "f32", "f32"]


def test_a_carry_that_others_need_at_the_beginning() -> None:
    after = LOW_BOTH.replace(
        "ROOT result = (bf16[3,4,4], bf16[4,4]) tuple(low0, low1)",
        "ROOT result = (bf16[3,4,4], bf16[4,4], f32[4,4]) tuple(low0, low1, t)",
    )
    module = run_rounded(NAME, scan(LARGEST, after))
    assert types(module, "w", "c", "next", "t") == ["(bf16, f32)", "f32", "f32", "f32"]


def test_one_value_in_both_places_is_converted_in_one() -> None:
    body = "sum = f32[4,4] add(x, c)"
    text = scan(body, LOW_STEPS).replace("tuple(out, next)", "tuple(sum, sum)")
    module = run_rounded(NAME, text)
    assert types(module, "w", "sum") == ["(bf16, f32)", "f32"]
    out, carry = module.computations["f"].root.operands
    assert (line(module, out.name), carry.name) == ("bf16[4,4] convert(sum)", "sum")
    run_rounded(
        NAME,
        text.replace("low = bf16[3,4,4] convert(w0)", "low = f32[3,4,4] negate(w0)").replace(
            "(bf16[3,4,4], f32[4,4]) tuple", "(f32[3,4,4], f32[4,4]) tuple"
        ),
        changes=False,
    )


def test_scans_that_share_a_computation_stay() -> None:
    after = """v = (f32[3,4,4], f32[4,4]) scan(w0, t), dimensions={0}, num_carries=1,
        is_associative=true, to_apply=f
      v0 = f32[3,4,4] get-tuple-element(v), index=0
      v1 = f32[4,4] get-tuple-element(v), index=1
      low = bf16[3,4,4] convert(v0)
      ROOT result = (bf16[3,4,4], f32[4,4], f32[4,4]) tuple(low, w1, v1)"""
    module = run_rounded(NAME, scan(SUM, after), changes=False)
    assert types(module, "v", "w", "r") == ["(f32, f32)"] * 3


def test_a_carry_alone() -> None:
    text = """HloModule m
    f { x = f32[4] parameter(0)
      c = f32[4] parameter(1)
      ROOT r = f32[4] OP(x, c) }
    ENTRY e { a = f32[3,4] parameter(0)
      b = f32[4] parameter(1)
      s = f32[3,4] negate(a)
      t = f32[4] negate(b)
      w = f32[4] scan(s, t), dimensions={0}, num_carries=1, is_associative=true, to_apply=f
      ROOT low = bf16[4] convert(w) }"""
    module = run_rounded(NAME, text.replace("OP", "maximum"))
    assert types(module, "w", "r", "x", "c", "s", "t") == ["bf16"] * 6
    run_rounded(NAME, text.replace("OP", "add"), changes=False)


def test_a_carry_in_bf16_from_the_start() -> None:
    body = "out = f32[4,4] negate(x)\n next = bf16[4,4] negate(c)"
    text = scan(body, LOW_STEPS).replace("c = f32[4,4]", "c = bf16[4,4]")
    text = text.replace("b = f32[4,4]", "b = bf16[4,4]").replace(" t = f32[4,4]", " t = bf16[4,4]")
    text = text.replace("w1 = f32", "w1 = bf16").replace(", f32[4,4])", ", bf16[4,4])")
    module = run_rounded(NAME, text)
    assert types(module, "w", "r", "out") == ["(bf16, bf16)", "(bf16, bf16)", "bf16"]


def test_the_default_backend_has_scans() -> None:
    module = run_rounded(NAME, scan(SUM, LOW_STEPS), {}, reads=())
    assert types(module, "w", "out") == ["(bf16, f32)", "f32"]


def test_scans_in_order_are_refused() -> None:
    module = parse_module(scan(SUM, LOW_STEPS, "false"))
    with pytest.raises(PassRefused, match="Non-associative scan '%w' has to be expanded before"):
        create_pass(NAME, {"float_support": MATRIX_UNIT}).run(module, PassContext(NAME))
