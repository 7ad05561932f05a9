"""Comparisons of programs that round to narrow types at other places."""

from __future__ import annotations

import pytest

from hloopt.equivalence import Comparison, Reference, RunSettings
from hloopt.equivalence.measures import unit_at
from hloopt.equivalence.path_types import PathTypes
from hloopt.equivalence.widening import without_narrow_floats
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.rounding_noise import terms_of
from hloopt.interpreter.values import dtype_of
from hloopt.ir.module import Module
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

EARLY = """HloModule m

ENTRY e {
  p = f32[64,64]{1,0} parameter(0)
  q = f32[64,64]{1,0} parameter(1)
  m = f32[64,64]{1,0} multiply(p, q)
  c = bf16[64,64]{1,0} convert(m)
  t = bf16[64,64]{1,0} tanh(c)
  d = bf16[64,64]{1,0} dot(t, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[64,64]{1,0} convert(d)
}
"""
LATE = EARLY.replace(
    "c = bf16[64,64]{1,0} convert(m)\n  t = bf16[64,64]{1,0} tanh(c)",
    "c = f32[64,64]{1,0} tanh(m)\n  t = bf16[64,64]{1,0} convert(c)",
)
LOOP = """HloModule m

body {
  s = (s32[], f32[8,8]{1,0}, f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8,8]{1,0} get-tuple-element(s), index=1
  y = f32[8]{0} get-tuple-element(s), index=2
  one = s32[] constant(1)
  n = s32[] add(i, one)
  b = bf16[8,8]{1,0} convert(x)
  d = f32[8,8]{1,0} dot(b, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[8,8]{1,0} tanh(d)
  ROOT t = (s32[], f32[8,8]{1,0}, f32[8]{0}) tuple(n, e, y)
}

more {
  s = (s32[], f32[8,8]{1,0}, f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  end = s32[] constant(5)
  ROOT c = pred[] compare(i, end), direction=LT
}

ENTRY e {
  p = f32[8,8]{1,0} parameter(0)
  q = f32[8]{0} parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[8,8]{1,0}, f32[8]{0}) tuple(z, p, q)
  w = (s32[], f32[8,8]{1,0}, f32[8]{0}) while(t), condition=more, body=body
  ROOT r = f32[8,8]{1,0} get-tuple-element(w), index=1
}
"""


def examine(before: str, after: str, seeds: int = 3) -> Comparison:
    modules = [parse_module(text) for text in (before, after)]
    for module in modules:
        verify_module(module)
    return Reference(modules[0], RunSettings(seeds=seeds)).examine(modules[1], "precision")


def times(value: str, factor: str, result: str, type: str = "bf16[64,64]{1,0}") -> str:
    """Lines that multiply a value by a constant."""
    scalar = type.partition("[")[0]
    return (
        f"  k = {scalar}[] constant({factor})\n"
        f"  ks = {type} broadcast(k), dimensions={{}}\n"
        f"  {result} = {type} multiply({value}, ks)\n"
    )


@pytest.mark.parametrize(("before", "after"), [(EARLY, LATE), (LATE, EARLY)])
def test_a_rounding_may_be_at_another_place(before: str, after: str) -> None:
    found = examine(before, after)
    assert found.mismatch is None
    (output,) = found.outputs
    assert output.narrowest == "bf16"
    assert output.error_in_units is not None
    assert output.tolerance_in_units is not None
    assert 0 < output.error_in_units <= output.tolerance_in_units <= 8 * output.error_in_units


def test_four_units_of_the_narrow_type_are_found() -> None:
    planted = LATE.replace("  d = ", times("t", "1.03125", "u") + "  d = ").replace(
        "dot(t, t)", "dot(u, t)"
    )
    found = examine(EARLY, planted)
    assert found.mismatch is not None
    assert found.mismatch.is_decided


def test_what_the_roundings_hide_is_found_without_them() -> None:
    """A part in a thousand, less than any rounding to bf16."""
    planted = LATE.replace("  c = ", times("m", "1.001", "n", "f32[64,64]{1,0}") + "  c = ")
    found = examine(EARLY, planted.replace("tanh(m)", "tanh(n)"))
    assert found.mismatch is not None
    assert found.mismatch.reason.startswith("with f32 for all narrower floats, output[")


def test_a_type_that_is_not_on_the_way_allows_nothing() -> None:
    wide = (
        EARLY.replace("bf16", "f32")
        .replace("convert(m)", "copy(m)")
        .replace("convert(d)", "copy(d)")
    )
    found = examine(wide, EARLY)
    assert found.mismatch is not None
    assert found.mismatch.is_decided


def test_a_constant_may_be_rounded() -> None:
    before = LATE.replace("  c = ", times("m", "0.1", "n", "f32[64,64]{1,0}") + "  c = ").replace(
        "tanh(m)", "tanh(n)"
    )
    found = examine(before, before.replace("constant(0.1)", "constant(0.10009765625)"))
    assert found.mismatch is None
    found = examine(before, before.replace("constant(0.1)", "constant(0.103)"))
    assert found.mismatch is not None


def test_a_scalar_may_be_one_unit_off() -> None:
    text = """HloModule m

ENTRY e {
  p = bf16[] parameter(0)
  q = bf16[] parameter(1)
  d = bf16[] divide(p, q)
  t = bf16[] tanh(d)
  ROOT r = bf16[] exponential(t)
}
"""
    wide = """HloModule m

ENTRY e {
  p = bf16[] parameter(0)
  q = bf16[] parameter(1)
  a = f32[] convert(p)
  b = f32[] convert(q)
  d = f32[] divide(a, b)
  t = f32[] tanh(d)
  e = f32[] exponential(t)
  ROOT r = bf16[] convert(e)
}
"""
    for before, after in ((text, wide), (wide, text)):
        found = examine(before, after, seeds=40)
        assert found.mismatch is None, found.mismatch


def test_a_tolerance_of_more_than_a_tenth_is_no_verdict() -> None:
    before = EARLY.replace("bf16", "f8e4m3fn")
    found = examine(before, LATE.replace("bf16", "f8e4m3fn"))
    assert found.mismatch is not None
    assert not found.mismatch.is_decided
    assert "roundings to f8e4m3fn on its way may explain" in found.mismatch.reason
    assert "more than 10% of that: give inputs of your own" in found.mismatch.reason


def test_special_values_are_told() -> None:
    """A round trip through f16 makes large numbers infinite."""
    text = """HloModule m

ENTRY e {
  p = f32[64]{0} parameter(0)
  s = f32[64]{0} multiply(p, p)
  h = f16[64]{0} convert(s)
  ROOT r = f32[64]{0} convert(h)
}
"""
    found = examine(text, text.replace("multiply(p, p)", "abs(p)"))
    assert found.mismatch is not None
    found = examine(
        text, text.replace("ROOT r = f32[64]{0} convert(h)", "ROOT r = f32[64]{0} copy(s)")
    )
    assert found.mismatch is None


def test_the_narrowest_type_follows_loops() -> None:
    module = parse_module(LOOP)
    types = PathTypes(module)
    assert types.of_output(()) == ELEMENT_TYPES["bf16"]
    assert {i.name for i in types.movable_roundings()} >= {"p", "e"}
    plain = PathTypes(parse_module(LOOP.replace("bf16", "f32")))
    assert plain.of_output(()) == ELEMENT_TYPES["f32"]
    assert not plain.movable_roundings()


def test_roundings_add_up_over_trips() -> None:
    other = LOOP.replace(
        "e = f32[8,8]{1,0} tanh(d)",
        "g = bf16[8,8]{1,0} convert(d)\n  h = bf16[8,8]{1,0} tanh(g)\n"
        "  e = f32[8,8]{1,0} convert(h)",
    )
    before, after = (text.replace("constant(5)", "constant(3)") for text in (LOOP, other))
    found = examine(before, after)
    assert found.mismatch is None


@pytest.mark.parametrize("length", [8, 256])
def test_each_step_of_a_sum_may_be_rounded(length: int) -> None:
    text = """HloModule m

sum {
  a = bf16[] parameter(0)
  b = bf16[] parameter(1)
  ROOT s = bf16[] add(a, b)
}

ENTRY e {
  p = bf16[32,256]{1,0} parameter(0)
  z = bf16[] constant(0)
  ROOT r = bf16[32]{0} reduce(p, z), dimensions={1}, to_apply=sum
}
"""
    steps = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  s = f32[] add(a, b)
  t = bf16[] convert(s)
  ROOT r = f32[] convert(t)
}

ENTRY e {
  p = bf16[32,256]{1,0} parameter(0)
  z = f32[] constant(0)
  w = f32[32,256]{1,0} convert(p)
  s = f32[32]{0} reduce(w, z), dimensions={1}, to_apply=sum
  ROOT r = bf16[32]{0} convert(s)
}
"""
    text, steps = (one.replace("256", str(length)) for one in (text, steps))
    for before, after in ((text, steps), (steps, text)):
        mismatch = examine(before, after).mismatch
        if length == 8:
            assert mismatch is None, mismatch
        else:
            assert mismatch is not None
            assert not mismatch.is_decided


def test_windows_have_as_many_terms_as_they_are_large() -> None:
    text = """HloModule m

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  p = f32[64]{0} parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[64]{0} reduce-window(p, z), window={size=9 pad=4_4}, to_apply=sum
}
"""
    assert terms_of(parse_module(text)["r"]) == 10


def test_outputs_have_the_types_of_their_own_paths() -> None:
    text = EARLY.replace(
        "ROOT r = f32[64,64]{1,0} convert(d)",
        "r = f32[64,64]{1,0} convert(d)\n"
        "  ROOT both = (f32[64,64]{1,0}, f32[64,64]{1,0}) tuple(r, m)",
    )
    types = PathTypes(parse_module(text))
    assert [types.of_output((n,)) for n in (0, 1)] == [ELEMENT_TYPES[n] for n in ("bf16", "f32")]


def test_a_copy_without_narrow_floats_is_valid() -> None:
    text = """HloModule m, entry_computation_layout={(bf16[2]{0})->(bf16[2]{0}, s4[2]{0:E(4)})}

ENTRY e {
  p = bf16[2]{0} parameter(0)
  k = bf16[2]{0} constant({0.1, -3})
  s = bf16[2]{0} add(p, k)
  q = bf16[2]{0} reduce-precision(s), exponent_bits=5, mantissa_bits=3
  i = s4[2]{0:E(4)} convert(q)
  ROOT t = (bf16[2]{0}, s4[2]{0:E(4)}) tuple(q, i)
}
"""
    wide = without_narrow_floats(parse_module(text))
    printed = print_module(wide)
    verify_module(parse_module(printed))
    assert "bf16" not in printed
    assert "constant({0.100097656, -3})" in printed
    assert "exponent_bits=8, mantissa_bits=23" in printed


def test_bits_that_are_read_stay() -> None:
    text = """HloModule m

ENTRY e {
  p = bf16[2]{0} parameter(0)
  ROOT r = u16[2]{0} bitcast-convert(p)
}
"""
    with pytest.raises(RunError, match="it reads the bits of narrow floats"):
        without_narrow_floats(parse_module(text))
    found = examine(text, text)
    assert found.mismatch is None
    assert found.notes == [
        "the modules with f32 for narrow floats: %r: it reads the bits of narrow floats"
    ]


@pytest.mark.parametrize(
    ("type", "size", "unit"),
    [
        ("bf16", 1.0, 2**-7),
        ("bf16", 1.9, 2**-7),
        ("bf16", 2.0, 2**-6),
        ("f32", 3.0, 2**-22),
        ("f16", 0.0, 2**-24),
        ("f8e4m3fn", 16.0, 2.0),
    ],
)
def test_a_unit_is_the_distance_of_neighbours(type: str, size: float, unit: float) -> None:
    assert unit_at(size, dtype_of(ELEMENT_TYPES[type])) == unit


def test_programs_keep_their_types() -> None:
    module: Module = parse_module(EARLY)
    without_narrow_floats(module)
    assert print_module(module) == print_module(parse_module(EARLY))


def test_a_bitcast_sees_the_layout_that_a_conversion_made() -> None:
    text = """HloModule m

ENTRY e {
  p = f32[2,3]{1,0} parameter(0)
  c = bf16[2,3]{0,1} convert(p)
  ROOT b = bf16[3,2]{1,0} bitcast(c)
}
"""
    copied = """HloModule m

ENTRY e {
  p = f32[2,3]{1,0} parameter(0)
  c = bf16[2,3]{1,0} convert(p)
  y = bf16[2,3]{0,1} copy(c)
  ROOT b = bf16[3,2]{1,0} bitcast(y)
}
"""
    assert examine(text, copied).mismatch is None
    found = examine(text, copied.replace("3]{0,1} copy", "3]{1,0} copy")).mismatch
    assert found is not None
    assert found.is_decided
