"""Comparisons across precision: what is summed, scaled or converted between narrow types."""

from __future__ import annotations

import pytest

from hloopt.equivalence import Mismatch, Reference, RunSettings
from hloopt.equivalence.path_types import PathTypes
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


def scaled_dot(scales: str, between: str = "", names: str = "a, b") -> str:
    return f"""HloModule m

ENTRY e {{
  l = f8e4m3fn[64,64]{{1,0}} parameter(0)
  r = f8e4m3fn[64,64]{{1,0}} parameter(1)
  a = {scales}[64,2]{{1,0}} parameter(2)
  b = {scales}[64,2]{{1,0}} parameter(3)
  {between}
  ROOT d = f32[64,64]{{1,0}} scaled-dot(l, r, {names}), lhs_contracting_dims={{1}},
    rhs_contracting_dims={{1}}
}}
"""


IN_F32 = "c = f32[64,2]{1,0} convert(a)\n  f = f32[64,2]{1,0} convert(b)"
DOUBLED = IN_F32.replace("convert(a)", "add(g, g)").replace(
    "c =", "g = f32[64,2]{1,0} convert(a)\n  c ="
)


def compare(before: str, after: str, settings: RunSettings | None = None) -> Mismatch | None:
    reference = Reference(parse_module(before), settings or RunSettings())
    return reference.examine(parse_module(after), "precision").mismatch


def test_a_scaled_dot_rounds_what_it_multiplies_by_scales() -> None:
    """In bf16 where the scales are; in f32 where they are converted to it."""
    narrow, wide = scaled_dot("bf16"), scaled_dot("bf16", IN_F32, "c, f")
    assert compare(narrow, wide) is None
    assert compare(wide, narrow) is None
    mismatch = compare(narrow, scaled_dot("bf16", DOUBLED, "c, f"))
    assert mismatch is not None
    assert mismatch.is_decided


@pytest.mark.parametrize("scales", ["f8e8m0fnu", "f32"])
def test_scales_that_are_exact_allow_no_more(scales: str) -> None:
    """Powers of two, and scales of the result's type."""
    types = PathTypes(parse_module(scaled_dot(scales)))
    assert not types.movable_roundings()
    rounding = PathTypes(parse_module(scaled_dot("bf16"))).movable_roundings()
    assert [i.name for i in rounding] == ["d"]


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
    mismatch = compare(text, steps, RunSettings(seeds=1, steps=1000))
    assert mismatch is not None
    assert "stopped after" in mismatch.reason
    assert not mismatch.is_decided


ONE_BY_ONE = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  p = bf16[12000,8]{1,0} parameter(0)
  c = f32[12000,8]{1,0} convert(p)
  a = f32[12000,8]{1,0} logistic(c)
  z = f32[] constant(0)
  r = f32[8]{0} reduce(a, z), dimensions={0}, to_apply=sum
  ROOT o = bf16[8]{0} convert(r)
}
"""
BY_GROUPS = ONE_BY_ONE.replace(
    "  r = f32[8]{0} reduce(a, z)",
    "  g = f32[375,32,8]{2,1,0} reshape(a)\n"
    "  h = f32[375,8]{1,0} reduce(g, z), dimensions={1}, to_apply=sum\n"
    "  r = f32[8]{0} reduce(h, z)",
)


def test_sums_of_many_terms_of_one_sign_may_be_off_by_more() -> None:
    """Their partial sums grow with the number of terms, and what each addition rounds with them."""
    assert compare(ONE_BY_ONE, BY_GROUPS) is None


def test_a_term_too_few_of_many_is_found() -> None:
    short = BY_GROUPS.replace("reshape(a)", "reshape(t)").replace(
        "  g = ",
        "  s = f32[11999,8]{1,0} slice(a), slice={[0:11999], [0:8]}\n"
        "  t = f32[12000,8]{1,0} pad(s, z), padding=0_1x0_0\n"
        "  g = ",
    )
    mismatch = compare(ONE_BY_ONE, short)
    assert mismatch is not None
    assert mismatch.is_decided


PRODUCT = """HloModule m

ENTRY e {
  i = s32[8,64]{1,0} parameter(0)
  j = s32[64,8]{1,0} parameter(1)
  x = bf16[8,64]{1,0} convert(i)
  y = bf16[64,8]{1,0} convert(j)
  ROOT d = s32[8,8]{1,0} dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
PRODUCT_IN_F32 = PRODUCT.replace(
    "  ROOT d",
    "  v = f32[8,64]{1,0} convert(x)\n  w = f32[64,8]{1,0} convert(y)\n  ROOT d",
).replace("dot(x, y)", "dot(v, w)")


def test_a_product_is_rounded_to_its_operands_type_before_it_is_an_integer() -> None:
    """XLA's result-caster says so; in f32 the integers are others, by what bf16 leaves of them."""
    mismatch = compare(PRODUCT, PRODUCT_IN_F32)
    assert mismatch is not None
    assert not mismatch.is_decided
    assert "which rounding may explain" in mismatch.reason


def test_a_wrong_product_as_an_integer_is_found_in_spite_of_that() -> None:
    wrong = PRODUCT_IN_F32.replace("f32[8,64]{1,0} convert(x)", "f32[8,64]{1,0} negate(u)").replace(
        "  v =", "  u = f32[8,64]{1,0} convert(x)\n  v ="
    )
    mismatch = compare(PRODUCT, wrong)
    assert mismatch is not None
    assert mismatch.is_decided


def test_one_too_much_is_found_where_the_sum_is_exact() -> None:
    """A bitcast-convert leaves no program with f32 for all narrower floats."""
    small = PRODUCT.replace("s32[8,64]{1,0} parameter", "s8[8,64]{1,0} parameter").replace(
        "s32[64,8]{1,0} parameter", "s8[64,8]{1,0} parameter"
    )
    exact = small.replace("ROOT d", "d").removesuffix("}\n") + (
        "  f = bf16[8]{0} parameter(2)\n  b = u16[8]{0} bitcast-convert(f)\n"
        "  ROOT t = (s32[8,8]{1,0}, u16[8]{0}) tuple(d, b)\n}\n"
    )
    wrong = exact.replace(
        "  ROOT t",
        "  one = s32[] constant(1)\n  ones = s32[8,8]{1,0} broadcast(one), dimensions={}\n"
        "  more = s32[8,8]{1,0} add(d, ones)\n  ROOT t",
    ).replace("tuple(d, b)", "tuple(more, b)")
    assert compare(exact, exact) is None
    mismatch = compare(exact, wrong)
    assert mismatch is not None
    assert mismatch.is_decided


@pytest.mark.parametrize(
    ("operands", "result", "is_rounded"),
    [
        (("bf16", "bf16"), "s32", True),
        (("f16", "f16"), "u8", True),
        (("f32", "f32"), "s32", False),
        (("bf16", "f32"), "s32", False),
        (("s8", "s8"), "s32", False),
        (("bf16", "bf16"), "f32", False),
    ],
)
def test_products_that_are_rounded_before_they_are_integers(
    operands: tuple[str, str], result: str, is_rounded: bool
) -> None:
    left, right = operands
    module = parse_module(f"""HloModule m

ENTRY e {{
  x = {left}[4]{{0}} parameter(0)
  y = {right}[4]{{0}} parameter(1)
  d = {result}[] dot(x, y), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}
  l = {left}[1,4,1]{{2,1,0}} reshape(x)
  r = {right}[4,1,1]{{2,1,0}} reshape(y)
  c = {result}[1,1,1] convolution(l, r), window={{size=4}}, dim_labels=b0f_0io->b0f
  ROOT t = ({result}[], {result}[1,1,1]) tuple(d, c)
}}
""")
    assert [i.name for i in PathTypes(module).movable_roundings()] == ["d", "c"] * is_rounded
