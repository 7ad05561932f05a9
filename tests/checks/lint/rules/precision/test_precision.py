"""Rules about precision."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

from hloopt.checks.results import Severity, Verdict

# -- HLL301 ---------------------------------------------------------------------------------------

DIMENSIONS = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"
FLOPS = 2 * 2048**3


GPU = ', is_scheduled=true, frontend_attributes={fingerprint_before_lhs="0"}'


def product(
    *before: str,
    lhs: str = "f32[2048,2048] convert(a)",
    rhs: str = "f32[2048,2048] convert(b)",
    types: tuple[str, str] = ("bf16", "bf16"),
    dot: str = f"f32[2048,2048] dot(x, y), {DIMENSIONS}",
    computations: str = "",
) -> str:
    lines = "\n  ".join(before)
    return f"""HloModule m
{computations}
ENTRY e {{
  a = {types[0]}[2048,2048] parameter(0)
  b = {types[1]}[2048,2048] parameter(1)
  {lines}
  x = {lhs}
  y = {rhs}
  ROOT d = {dot}
}}
"""


def found_upcasts(text: str, **options: object) -> list[str]:
    return found_names("HLL301", text, **options)


def test_a_product_of_widened_operands_and_the_time_it_loses() -> None:
    (found,) = violations("HLL301", product())
    assert found.message == (
        "%d multiplies in f32, although its operands are bf16, widened by %x and %y (17.4 us)"
    )
    rates = 494.7e12, 989.4e12
    least = [FLOPS / rate for rate in rates]
    assert found.impact.seconds == pytest.approx(least[0] - least[1])
    assert found.impact.moved == 0
    assert [each.instruction for each in found.related] == ["x", "y"]


def test_products_of_few_flops_are_not_worth_a_finding() -> None:
    assert found_upcasts(product(), flops=FLOPS) == ["d"]
    assert not found_upcasts(product(), flops=FLOPS + 1)


def test_a_product_that_waits_for_memory_is_no_faster_narrow() -> None:
    text = product(
        "a1 = bf16[1,2048] parameter(2)",
        lhs="f32[1,2048] convert(a1)",
        dot=f"f32[1,2048] dot(x, y), {DIMENSIONS}",
    )
    assert not found_upcasts(text, flops=1)
    assert found_upcasts(text, flops=1, target=None) == ["d"]


def test_without_a_target_there_is_no_time() -> None:
    (found,) = violations("HLL301", product(), target=None)
    assert found.impact.seconds == 0


@pytest.mark.parametrize(
    ("types", "is_found"),
    [
        (("bf16", "bf16"), True),
        (("f16", "f16"), True),
        (("f8e4m3fn", "f8e5m2"), True),
        (("f8e5m2", "f8e4m3fn"), True),
        (("f8e4m3fn", "f8e4m3fn"), True),
        (("f8e5m2", "f8e5m2"), False),  # no unit multiplies these
        (("bf16", "f16"), False),
        (("f64", "f64"), False),
        (("s8", "s8"), False),
    ],
)
def test_types_that_units_multiply(types: tuple[str, str], is_found: bool) -> None:
    assert bool(found_upcasts(product(types=types))) == is_found


@pytest.mark.parametrize(
    ("dot", "is_found"),
    [
        (f"f32[2048,2048] dot(x, y), {DIMENSIONS}, operand_precision={{highest,highest}}", True),
        (f"f32[2048,2048] dot(x, y), {DIMENSIONS}, algorithm=dot_f32_f32_f32", False),
        (f"f64[2048,2048] dot(x, y), {DIMENSIONS}", False),
        (f"f32[2048,2048] dot(x, x), {DIMENSIONS}", True),
        (f"f32[2048,2048] dot(y, b), {DIMENSIONS}", False),
        ('f32[2048,2048] custom-call(x, y), custom_call_target="f"', False),
    ],
)
def test_products_that_are_wide(dot: str, is_found: bool) -> None:
    assert bool(found_upcasts(product(dot=dot))) == is_found


@pytest.mark.parametrize("target", ["__cublas$gemm", "__cublas$lt$matmul"])
def test_library_calls(target: str) -> None:
    config = (
        '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["1"]}}}'
    )
    call = (
        "(f32[2048,2048], s8[4096]) custom-call(x, y), "
        f'custom_call_target="{target}", backend_config={config}'
    )
    assert found_upcasts(product(dot=call)) == ["d"]


def test_convolutions() -> None:
    text = """HloModule m
ENTRY e {
  a = bf16[8,32,32,64] parameter(0)
  k = bf16[3,3,64,64] parameter(1)
  x = f32[8,32,32,64] convert(a)
  y = f32[3,3,64,64] convert(k)
  ROOT c = f32[8,30,30,64] convolution(x, y), window={size=3x3}, dim_labels=b01f_01io->b01f
}
"""
    assert found_upcasts(text) == ["c"]


def test_one_wide_operand_makes_the_product_wide() -> None:
    assert not found_upcasts(
        product("c = f32[2048,2048] parameter(2)", rhs="f32[2048,2048] copy(c)")
    )
    assert not found_upcasts(
        product("c = f32[2048,2048] parameter(2)", lhs="f32[2048,2048] copy(c)")
    )


@pytest.mark.parametrize(
    ("before", "lhs", "is_found"),
    [
        ("w = f32[2048,2048] convert(a)", "f32[2048,2048] transpose(w), dimensions={1,0}", True),
        ("w = f32[2048,2048] convert(a)", "f32[2048,2048] copy(w)", True),
        ("w = f32[2048,2048] convert(a)", "f32[2048,2048] bitcast(w)", True),
        ("w = f32[2048,2048] convert(a)", "f32[2048,2048] reshape(w)", True),
        ("w = s32[2048,2048] convert(a)", "f32[2048,2048] bitcast(w)", False),
        ("w = f32[2048,2048] convert(a)", "f32[2048,2048] negate(w)", False),
    ],
)
def test_what_only_arranges_elements(before: str, lhs: str, is_found: bool) -> None:
    assert bool(found_upcasts(product(before, lhs=lhs))) == is_found


WIDEN = """
widen {
  p = bf16[2048,2048] parameter(0)
  w = f32[2048,2048] convert(p)
  ROOT t = f32[2048,2048] transpose(w), dimensions={1,0}
}
twice {
  p2 = bf16[2048,2048] parameter(0)
  w2 = f32[2048,2048] convert(p2)
  n2 = f32[2048,2048] negate(w2)
  ROOT both = (f32[2048,2048], f32[2048,2048]) tuple(n2, w2)
}
multiply {
  l = f32[2048,2048] parameter(0)
  r = f32[2048,2048] parameter(1)
  ROOT in = f32[2048,2048] dot(l, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def test_converts_and_products_in_fusions() -> None:
    fused = "f32[2048,2048] fusion(a), kind=kLoop, calls=widen"
    text = product(
        lhs=fused,
        dot="f32[2048,2048] fusion(x, y), kind=kCustom, calls=multiply",
        computations=WIDEN,
    )
    assert found_upcasts(text.replace("HloModule m", "HloModule m" + GPU)) == ["in"]
    several = product(
        "f = (f32[2048,2048], f32[2048,2048]) fusion(a), kind=kLoop, calls=twice",
        lhs="f32[2048,2048] get-tuple-element(f), index={}",
        computations=WIDEN,
    )
    several = several.replace("HloModule m", "HloModule m" + GPU)
    assert found_upcasts(several.replace("index={}", "index=1")) == ["d"]
    assert not found_upcasts(several.replace("index={}", "index=0"))


def test_the_operand_of_a_call_is_not_looked_through() -> None:
    text = product(dot="f32[2048,2048] call(x, y), to_apply=multiply", computations=WIDEN)
    assert not found_upcasts(text)


def test_converts_that_are_kernels_make_the_product_read_more() -> None:
    fused = "f32[2048,2048] fusion(a), kind=kLoop, calls=widen"
    text = product(
        lhs=fused,
        dot="f32[2048,2048] fusion(x, y), kind=kCustom, calls=multiply",
        computations=WIDEN,
    ).replace("HloModule m", "HloModule m" + GPU)
    (found,) = violations("HLL301", text)
    assert found.impact.moved == 2 * 2 * 2048**2


def test_a_converted_operand_in_the_fusion_of_the_product_is_read_narrow() -> None:
    inside = """
both {
  l = bf16[2048,2048] parameter(0)
  r = bf16[2048,2048] parameter(1)
  wl = f32[2048,2048] convert(l)
  wr = f32[2048,2048] convert(r)
  ROOT in = f32[2048,2048] dot(wl, wr), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""
    text = product(
        lhs="bf16[2048,2048] copy(a)",
        rhs="bf16[2048,2048] copy(b)",
        dot="f32[2048,2048] fusion(x, y), kind=kCustom, calls=both",
        computations=inside,
    ).replace("HloModule m", "HloModule m" + GPU)
    (found,) = violations("HLL301", text)
    assert found.impact.moved == 0


def test_a_module_that_the_cpu_compiler_is_done_with_has_no_verdict() -> None:
    text = product().replace("HloModule m", "HloModule m, is_scheduled=true")
    found = check("HLL301", text)
    assert found.verdict is Verdict.NONE
    assert "XLA:CPU widens products itself" in found.reason
    assert found.remedy == "Give the module before optimizations."
    narrow = text.replace("dot(x, y)", "dot(a, b)")
    assert check("HLL301", narrow).verdict is Verdict.PASSED


# -- HLL302 ---------------------------------------------------------------------------------------


def rounded(*lines: str) -> str:
    text = "\n  ".join(lines)
    return f"""HloModule m
ENTRY e {{
  p = f32[1024] parameter(0)
  h = bf16[1024] parameter(1)
  d = f64[1024] parameter(2)
  i = s32[1024] parameter(3)
  x = f32[1024] negate(p)
  {text}
}}
"""


NARROW, WIDE = "n = bf16[1024] convert(x)", "ROOT w = f32[1024] convert(n)"


def test_a_value_that_is_rounded_and_widened() -> None:
    (found,) = violations("HLL302", rounded(NARROW, WIDE))
    assert found.message == (
        "%n rounds f32 to bf16, and %w goes on in f32: the values lose bits that nothing saves"
    )
    assert found.severity is Severity.NOTE
    assert [each.instruction for each in found.related] == ["n"]
    assert not violations("HLL302", rounded(NARROW, WIDE), size=4097)


@pytest.mark.parametrize(
    "lines",
    [
        (NARROW, "t = bf16[1024] reverse(n), dimensions={0}", "ROOT w = f32[1024] convert(t)"),
        (NARROW, "ROOT w = f64[1024] convert(n)"),
        ("n = f32[1024] convert(d)", "ROOT w = f64[1024] convert(n)"),
        ("n = f8e5m2[1024] convert(x)", "ROOT w = bf16[1024] convert(n)"),
        ("y = f32[1024] convert(d)", "n = bf16[1024] convert(y)", WIDE),
    ],
)
def test_other_chains_that_lose_bits(lines: tuple[str, ...]) -> None:
    assert "w" in found_names("HLL302", rounded(*lines), size=1)


@pytest.mark.parametrize(
    "lines",
    [
        # read narrow by somebody else
        (NARROW, "w = f32[1024] convert(n)", "ROOT t = (f32[1024], bf16[1024]) tuple(w, n)"),
        ("ROOT n = bf16[1024] convert(x)", "w = f32[1024] convert(n)"),
        (
            NARROW,
            "t = bf16[1024] reverse(n), dimensions={0}",
            "w = f32[1024] convert(t)",
            "ROOT r = (f32[1024], bf16[1024]) tuple(w, t)",
        ),
        (NARROW, "ROOT t = bf16[1024] reverse(n), dimensions={0}", "w = f32[1024] convert(t)"),
        # rounded on purpose, or for another operation
        (
            "n = f32[1024] reduce-precision(x), exponent_bits=8, mantissa_bits=7",
            "ROOT w = f64[1024] convert(n)",
        ),
        (NARROW, "m = bf16[1024] negate(n)", "ROOT w = f32[1024] convert(m)"),
        # the narrow type had all bits
        ("y = f32[1024] convert(h)", "n = bf16[1024] convert(y)", WIDE),
        (
            "y = f32[1024] convert(h)",
            "z = f32[1024] reverse(y), dimensions={0}",
            "n = bf16[1024] convert(z)",
            WIDE,
        ),
        # no wider, or integers, which wrap around
        (NARROW, "ROOT w = f16[1024] convert(n)"),
        ("n = s8[1024] convert(i)", "ROOT w = s32[1024] convert(n)"),
        ("n = s16[1024] convert(x)", "ROOT w = f32[1024] convert(n)"),
        ("n = f32[1024] convert(i)", "ROOT w = f64[1024] convert(n)"),
    ],
)
def test_chains_that_lose_nothing_or_are_meant(lines: tuple[str, ...]) -> None:
    assert not violations("HLL302", rounded(*lines), size=1)


def test_what_goes_through_memory_narrow_saves_bytes() -> None:
    text = """HloModule m
narrow {
  x = f32[1024] parameter(0)
  ROOT n = bf16[1024] convert(x)
}
wide {
  m = bf16[1024] parameter(0)
  ROOT w = f32[1024] convert(m)
}
ENTRY e {
  p = f32[1024] parameter(0)
  f = bf16[1024] fusion(p), kind=kLoop, calls=narrow
  ROOT g = f32[1024] fusion(f), kind=kLoop, calls=wide
}
"""
    assert not violations("HLL302", text)
