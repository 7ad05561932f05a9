"""Where two modules first differ: the instruction, by how much, and what is other about it."""

from __future__ import annotations

from math import inf

import pytest

from hloopt.equivalence import RunSettings
from hloopt.equivalence.numerics import Numerics, localize
from hloopt.interpreter.errors import RunError
from hloopt.text import parse_module

STEP = """HloModule m

ENTRY e {
  p = f32[16,16]{1,0} parameter(0)
  q = f32[16,16]{1,0} parameter(1)
  d = f32[16,16]{1,0} dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k = f32[] constant(0.5)
  ks = f32[16,16]{1,0} broadcast(k), dimensions={}
  m = f32[16,16]{1,0} multiply(d, ks), metadata={op_name="jit(f)/layer_0/scale"}
  t = f32[16,16]{1,0} tanh(m), metadata={op_name="jit(f)/layer_0/tanh"}
  s = f32[16,16]{1,0} subtract(t, p), metadata={op_name="jit(f)/layer_1/sub"}
  ROOT r = (f32[16,16]{1,0}, f32[16,16]{1,0}) tuple(s, t)
}
"""
LOOP = """HloModule m

body {
  s = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[8]{0} get-tuple-element(s), index=1
  one = s32[] constant(1)
  n = s32[] add(i, one)
  two = s32[] constant(2)
  c = pred[] compare(i, two), direction=EQ
  cs = pred[8]{0} broadcast(c), dimensions={}
  a = f32[8]{0} add(x, x)
  half = f32[] constant(0.5)
  halves = f32[8]{0} broadcast(half), dimensions={}
  h = f32[8]{0} multiply(x, halves)
  y = f32[8]{0} select(cs, a, h)
  ROOT r = (s32[], f32[8]{0}) tuple(n, y)
}

more {
  s = (s32[], f32[8]{0}) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  end = s32[] constant(5)
  ROOT c = pred[] compare(i, end), direction=LT
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[8]{0}) tuple(z, p)
  w = (s32[], f32[8]{0}) while(t), condition=more, body=body
  ROOT r = f32[8]{0} get-tuple-element(w), index=1
}
"""
DEVICES = """HloModule m, num_partitions=4

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  g = f32[8]{0} all-reduce(p), channel_id=1, replica_groups={{0,1},{2,3}},
    use_global_device_ids=true, to_apply=sum
  h = f32[8]{0} multiply(g, g)
  ROOT r = f32[8]{0} all-reduce(h), channel_id=2, replica_groups={{0,1,2,3}},
    use_global_device_ids=true, to_apply=sum
}
"""


def find(before: str, after: str, **options: object) -> Numerics:
    settings = RunSettings(seeds=1)._replace(**options)  # type: ignore[arg-type]  # its fields
    return localize(parse_module(before), parse_module(after), settings)


def origin_of(found: Numerics) -> tuple[str, list[tuple[int, str, str]], list[str]]:
    assert found.origin is not None
    origin = found.origin
    return (
        origin.errors.before.name,
        [(c.number, c.before, c.after) for c in origin.operands],
        origin.attributes,
    )


def test_equal_modules_have_no_origin() -> None:
    found = find(STEP, STEP)
    assert found.origin is None
    assert found.comparison.mismatch is None
    assert [errors.before.name for errors in found.values] == ["d", "m", "t", "s"]
    assert not any(errors.differing for errors in found.values)


def test_a_constant_is_told_with_the_operation_that_uses_it() -> None:
    found = find(STEP, STEP.replace("constant(0.5)", "constant(0.25)"))
    assert origin_of(found) == ("m", [(1, "0.5", "0.25")], [])
    assert [errors.before.name for errors in found.values if errors.differing] == ["m", "t", "s"]
    assert found.origin is not None
    assert found.origin.error.relative == pytest.approx(0.5)


def test_what_follows_is_explained_by_its_operands() -> None:
    """The dot is off by a little, and everything behind by more."""
    other = STEP.replace("dot(p, q)", "dot(q, p)")
    assert origin_of(find(STEP, other))[0] == "d"


def test_swapped_operands_are_told() -> None:
    found = find(STEP, STEP.replace("subtract(t, p)", "subtract(p, t)"))
    operands = [(0, "tanh %t", "parameter %p"), (1, "parameter %p", "tanh %t")]
    assert origin_of(found) == ("s", operands, [])


def test_operands_of_a_sum_may_be_swapped() -> None:
    text = STEP.replace("subtract(t, p)", "add(t, p)")
    assert find(text, text.replace("add(t, p)", "add(p, t)")).origin is None


def test_another_attribute_is_told() -> None:
    found = find(STEP, STEP.replace("rhs_contracting_dims={0}", "rhs_contracting_dims={1}"))
    assert origin_of(found) == ("d", [], ["rhs_contracting_dims"])


def test_an_instruction_between_is_told_by_its_user() -> None:
    other = STEP.replace("  s = ", "  n = f32[16,16]{1,0} negate(t)\n  s = ").replace(
        "subtract(t, p)", "subtract(n, p)"
    )
    found = find(STEP, other)
    assert origin_of(found) == ("s", [(0, "tanh %t", "negate %n")], [])
    assert [i.name for i in found.uncounted.only_after] == ["n"]


def test_the_first_of_two_is_told() -> None:
    other = STEP.replace("constant(0.5)", "constant(0.25)").replace("(t, p)", "(p, t)")
    assert origin_of(find(STEP, other))[0] == "m"


def test_a_little_rounding_is_passed_over_for_what_is_more() -> None:
    """Half of a number, by another operation, and a wrong sign behind it."""
    other = STEP.replace("constant(0.5)", "constant(0.49999997)").replace("(t, p)", "(p, t)")
    assert origin_of(find(STEP, other))[0] == "s"


def test_names_tell_nothing() -> None:
    other = STEP.replace("constant(0.5)", "constant(0.25)")
    for old, new in (("m", "v7"), ("t", "v8"), ("s", "v9"), ("d", "v1")):
        other = other.replace(f"  {old} = ", f"  {new} = ").replace(f"({old}, ", f"({new}, ")
        other = other.replace(f"tanh({old})", f"tanh({new})").replace(f", {old})", f", {new})")
    found = find(STEP, other)
    assert origin_of(found)[0] == "m"
    assert found.origin is not None
    assert found.origin.errors.after.name == "v7"


def test_the_first_trip_that_differs_is_told() -> None:
    found = find(
        LOOP,
        LOOP.replace("add(x, x)", "subtract(x, x)").replace("select(cs, a, h)", "select(cs, a, h)"),
    )
    assert found.origin is not None
    assert found.origin.errors.before.name == "y"
    assert found.origin.run == 2
    assert found.origin.errors.runs == 5
    assert found.origin.errors.differing == 3


def test_devices_that_differ_are_told() -> None:
    found = find(DEVICES, DEVICES.replace("{{0,1},{2,3}}", "{{0,1},{3},{2}}"))
    assert found.origin is not None
    assert found.origin.errors.before.name == "g"
    assert found.origin.device == 2
    assert found.origin.attributes == ["replica_groups"]


def test_a_collective_hands_on_the_error_of_other_devices() -> None:
    other = DEVICES.replace("multiply(g, g)", "multiply(g, p)")
    assert origin_of(find(DEVICES, other))[0] == "h"


def test_values_in_small_parts_are_the_same_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    other = LOOP.replace("constant(0.5)", "constant(0.75)")
    whole = find(LOOP, other)
    monkeypatch.setattr("hloopt.equivalence.numerics.localization._MOST_KEPT", 40)
    parts = find(LOOP, other)
    assert [(e.before.name, e.runs, e.differing, e.first, e.worst) for e in parts.values] == [
        (e.before.name, e.runs, e.differing, e.first, e.worst) for e in whole.values
    ]
    assert parts.origin is not None
    assert whole.origin is not None
    assert parts.origin[1:] == whole.origin[1:]


def test_another_number_of_trips_is_counted() -> None:
    found = find(LOOP, LOOP.replace("constant(5)", "constant(4)"))
    assert found.uncounted.other_runs > 0
    assert found.comparison.mismatch is not None


def test_nan_for_a_number_is_infinitely_far() -> None:
    other = STEP.replace("constant(0.5)", "constant(nan)")
    found = find(STEP, other)
    assert origin_of(found)[0] == "m"
    assert found.origin is not None
    assert found.origin.error.ulps == inf


def test_nothing_is_compared_of_nothing() -> None:
    empty = STEP.replace("f32[16,16]", "f32[0,0]")
    found = find(empty, empty.replace("(t, p)", "(p, t)"))
    assert found.origin is None
    assert len(found.values) == 4


def test_other_results_are_no_obstacle() -> None:
    other = STEP.replace(
        "ROOT r = (f32[16,16]{1,0}, f32[16,16]{1,0}) tuple(s, t)",
        "ROOT r = (f32[16,16]{1,0}) tuple(s)",
    ).replace("0.5", "0.25")
    found = find(STEP, other)
    assert found.comparison.mismatch is not None
    assert found.comparison.mismatch.reason.startswith("the result was (f32[16,16]")
    assert origin_of(found)[0] == "m"


def test_other_parameters_are() -> None:
    other = STEP.replace("q = f32[16,16]", "q = f64[16,16]").replace("dot(p, q)", "dot(p, p)")
    with pytest.raises(RunError, match=r"the same inputs: parameter 1 was f32\[16,16\]"):
        find(STEP, other)


def test_a_schedule_is_no_difference() -> None:
    scheduled = STEP.replace("HloModule m", "HloModule m, is_scheduled=true")
    assert origin_of(find(STEP, scheduled.replace("0.5", "0.25")))[0] == "m"
    assert find(STEP, scheduled).origin is None


CALLED = """HloModule m

layer {
  p = f32[8]{0} parameter(0)
  h = f32[8]{0} multiply(p, p), metadata={op_name="mul"}
  ROOT s = f32[8]{0} subtract(h, p), metadata={op_name="sub"}
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  ROOT c = f32[8]{0} call(p), to_apply=layer, metadata={op_name="jit(f)/layer_0"}
}
"""
INLINED = """HloModule m

fused {
  a = f32[8]{0} parameter(0)
  b = f32[8]{0} parameter(1)
  ROOT d = f32[8]{0} subtract(a, b), metadata={op_name="jit(f)/layer_0/sub"}
}

ENTRY e {
  p = f32[8]{0} parameter(0)
  h = f32[8]{0} multiply(p, p), metadata={op_name="jit(f)/layer_0/mul"}
  ROOT f = f32[8]{0} fusion(h, p), kind=kLoop, calls=fused
}
"""


def test_what_is_inlined_and_fused_is_found_by_its_op_name() -> None:
    found = find(CALLED, INLINED)
    assert found.origin is None
    assert [(e.before.name, e.op_name) for e in found.values] == [
        ("h", "jit(f)/layer_0/mul"),
        ("s", "jit(f)/layer_0/sub"),
    ]
    other = find(CALLED, INLINED.replace("subtract(a, b)", "subtract(b, a)"))
    assert origin_of(other)[0] == "s"
    upstream = find(
        CALLED,
        INLINED.replace("multiply(p, p)", "multiply(p, k)").replace(
            "  h = ", "  k = f32[8]{0} negate(p)\n  h = "
        ),
    )
    assert origin_of(upstream)[0] == "h"


def test_an_op_name_that_two_have_tells_nothing() -> None:
    twice = CALLED.replace(
        "  ROOT s = ", '  u = f32[8]{0} multiply(h, p), metadata={op_name="mul"}\n  ROOT s = '
    ).replace("subtract(h, p)", "subtract(u, p)")
    assert [e.before.name for e in find(twice, INLINED).values] == ["s"]


def test_another_type_is_an_origin_though_it_rounds_as_it_should() -> None:
    narrow = STEP.replace(
        "t = f32[16,16]{1,0} tanh(m)",
        "n = bf16[16,16]{1,0} convert(m)\n  b = bf16[16,16]{1,0} tanh(n)",
    ).replace("  s = ", "  t = f32[16,16]{1,0} convert(b)\n  s = ")
    found = find(STEP, narrow)
    assert found.origin is not None
    assert found.origin.errors.before.name == "t"
    assert found.origin.errors.after.name == "b"
    assert found.origin.error.type == "bf16"
    assert 0 < found.origin.error.ulps <= 1


def test_the_unit_is_that_of_the_narrowest_type_on_the_way() -> None:
    narrow = STEP.replace("tanh(m)", "tanh(n)").replace(
        "  t = ", "  b = bf16[16,16]{1,0} convert(m)\n  n = f32[16,16]{1,0} convert(b)\n  t = "
    )
    settings = RunSettings(seeds=1)
    modules = parse_module(narrow), parse_module(narrow.replace("0.5", "0.5005"))
    found = localize(*modules, settings, "precision")
    assert found.origin is not None
    assert found.origin.errors.before.name == "m"
