"""Comparisons across precision: what is summed, scaled or converted between narrow types."""

from __future__ import annotations

from hloopt.equivalence import Reference, RunSettings
from hloopt.equivalence.widening import without_narrow_floats
from hloopt.text import parse_module
from hloopt.verifier import verify_module


def test_a_sum_between_conversions_is_the_same_sum_without_narrow_floats() -> None:
    """Else its many equal terms would be added one by one, and its error grow with them."""
    module = parse_module("""HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = f32[] add(a, b)
  n = bf16[] convert(s)
  ROOT w = f32[] convert(n)
}

ENTRY e {
  p = f32[30000]{0} parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[] reduce(p, z), dimensions={0}, to_apply=sum
}
""")
    wide = without_narrow_floats(module)
    assert wide.computations["sum"].root.name == "s"
    assert not verify_module(wide)


def test_conversions_that_change_the_type_stay_without_narrow_floats() -> None:
    text = """HloModule m

ENTRY e {
  p = bf16[4]{0} parameter(0)
  i = s32[4]{0} convert(p)
  d = f64[4]{0} convert(p)
  c = bf16[4]{0} convert(p)
  ROOT t = (s32[4]{0}, f64[4]{0}, bf16[4]{0}) tuple(i, d, c)
}
"""
    root = without_narrow_floats(parse_module(text)).entry.root
    assert [operand.name for operand in root.operands] == ["i", "d", "c"]


def test_a_scaled_dot_rounds_what_it_multiplies_by_scales() -> None:
    """In bf16 here; in f32 where the scales are."""
    before = """HloModule m

ENTRY e {
  l = f8e4m3fn[64,64]{1,0} parameter(0)
  r = f8e4m3fn[64,64]{1,0} parameter(1)
  a = bf16[64,2]{1,0} parameter(2)
  b = bf16[64,2]{1,0} parameter(3)
  ROOT d = f32[64,64]{1,0} scaled-dot(l, r, a, b), lhs_contracting_dims={1},
    rhs_contracting_dims={1}
}
"""
    wide = before.replace(
        "  ROOT", "  c = f32[64,2]{1,0} convert(a)\n  f = f32[64,2]{1,0} convert(b)\n  ROOT"
    )
    wide = wide.replace("(l, r, a, b)", "(l, r, c, f)")
    other = wide.replace("convert(a)", "add(g, g)")
    other = other.replace("  c =", "  g = f32[64,2]{1,0} convert(a)\n  c =")
    reference = Reference(parse_module(before), RunSettings())
    assert reference.examine(parse_module(wide), "precision").mismatch is None
    found = reference.examine(parse_module(other), "precision")
    assert found.mismatch is not None
    assert found.mismatch.is_decided


def test_a_reduction_step_by_step_does_not_run_on_and_on() -> None:
    text = """HloModule m

by {
  a = u4[] parameter(0)
  b = u4[] parameter(1)
  ROOT r = u4[] and(a, b)
}

ENTRY e {
  p = u4[5000]{0} parameter(0)
  z = u4[] constant(0)
  ROOT s = u4[] reduce(p, z), dimensions={0}, to_apply=by
}
"""
    steps = text.replace(
        "ROOT r = u4[] and(a, b)",
        "c = u8[] convert(a)\n  d = u8[] convert(b)\n  f = u8[] and(c, d)\n"
        "  ROOT r = u4[] convert(f)",
    )
    settings = RunSettings(seeds=1, steps=1000)
    found = Reference(parse_module(text), settings).examine(parse_module(steps), "precision")
    assert found.mismatch is not None
    assert "stopped after" in found.mismatch.reason
    assert not found.mismatch.is_decided
