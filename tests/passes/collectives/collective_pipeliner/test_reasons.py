"""Reasons to stay that hang on one use, one operand, one element or one trip."""

from __future__ import annotations

from typing import Any

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked
from tests.passes.collectives.collective_pipeliner.loops import STORED, loop

FORWARD: dict[str, Any] = {}
SINK: dict[str, Any] = {"pipelining_direction": "forward-sink"}
BACKWARD: dict[str, Any] = {"pipelining_direction": "backward", "should_process": ("all-reduce",)}
AR = "  ar = f32[1,8] all-reduce(part), replica_groups={}, to_apply=sum\n"
STORE = "  stored = f32[4,8] dynamic-update-slice(x, ar, i, zero)"


def reasons(text: str, **options: Any) -> list[str]:
    """The reasons of a run that moves nothing, without the words that all begin with."""
    begin = "not pipelined: "
    found = reasons_to_stay("collective-pipeliner", text, **options)
    assert all(reason.startswith(begin) for reason in found)
    return [reason.removeprefix(begin) for reason in found]


def moves(text: str, **options: Any) -> None:
    """Run the pass, which has to move something."""
    run_checked("collective-pipeliner", text, **options)


@pytest.mark.parametrize("options", [FORWARD, SINK, BACKWARD])
def test_a_root_that_something_reads_is_not_only_a_root(options: dict[str, Any]) -> None:
    root = "tuple(j, stored, y)\n"
    text = loop().replace(root, f"{root}  look = s32[] get-tuple-element(next), index=0\n")
    assert reasons(text, **options) == ["its loop %w has a body that does not end with a tuple"]


@pytest.mark.parametrize(
    ("body", "ends", "options", "reason"),
    [
        # What is between the collective and its store
        (AR + "  lost = token[] after-all()\n  row = f32[1,8] add(ar, part)\n"
         "  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)", "stored, y",
         {"pipeline_use_tree": False},
         "%row, between it and its store, is an add, which cannot be moved along"),
        (AR + "  row = f32[1,8] custom-call(ar), custom_call_target=\"t\", "
         "custom_call_has_side_effect=true\n"
         "  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)", "stored, y", FORWARD,
         "%row, between it and its store, is a custom-call, which cannot be moved along"),
        (AR + "  first = f32[1,8] negate(part)\n"
         "  row = f32[1,8] reshape(ar), control-predecessors={first}\n"
         "  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)", "stored, y", FORWARD,
         "%row, between it and its store, has to run after %first, by control"),
        (AR + "  row = f32[1,8] reshape(ar)\n"
         "  later = f32[1,8] negate(part), control-predecessors={row}\n"
         "  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)", "stored, y", FORWARD,
         "%row, between it and its store, has to run before %later, by control"),
        (AR + "  rows = (f32[1,8], f32[1,8]) tuple(ar, part)\n"
         "  row = f32[1,8] get-tuple-element(rows), index=0\n"
         "  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)", "stored, y", FORWARD,
         "%rows, between it and its store, is a tuple, which cannot be moved along"),
        (AR + "  rs = f32[1,8] reduce-scatter(ar), replica_groups={}, dimensions={0}, "
         "to_apply=sum\n"
         "  stored = f32[4,8] dynamic-update-slice(x, rs, i, zero)", "stored, y",
         {**SINK, "should_process": ("all-reduce",)},
         "%rs, between it and its store, is a reduce-scatter, which cannot be moved along"),
        # Its stores
        (AR + STORE + "\n  other = f32[4,8] dynamic-update-slice(y, ar, i, zero)",
         "stored, other", FORWARD, "its value is stored more than once, by %stored and %other"),
        (AR + "  stored = f32[4,8] dynamic-update-slice(x, ar, i, i)", "stored, y", FORWARD,
         "%stored does not store along one dimension: all indices but one have to be 0"),
        (AR + "  stored = f32[4,8] dynamic-update-slice(x, ar, zero, zero)", "stored, y", FORWARD,
         "%stored does not store along one dimension: all indices but one have to be 0"),
        (AR + "  one = s32[] constant(1)\n"
         "  stored = f32[4,8] dynamic-update-slice(x, ar, i, one)", "stored, y", FORWARD,
         "%stored does not store along one dimension: all indices but one have to be 0"),
        (AR + STORE, "stored, stored", FORWARD, "%stored is more than one element of %next"),
        (AR + STORE, "y, stored", FORWARD,
         "%stored writes into element 1 of the state, but becomes element 2"),
        (AR + "  k = s32[] multiply(i, i)\n"
         "  stored = f32[4,8] dynamic-update-slice(x, ar, k, zero)", "stored, y", FORWARD,
         "index %k of %stored does not follow from the loop counter: it is not a sum, difference "
         "or multiple of it that stays without overflow"),
        (AR + "  n = f32[4,8] negate(x)\n"
         "  stored = f32[4,8] dynamic-update-slice(n, ar, i, zero)", "stored, y", FORWARD,
         "buffer %n of %stored is not an element of the loop's state"),
        (AR + "  n = f32[4,8] negate(x)\n  stored = f32[4,8] dynamic-update-slice(n, ar, i, zero), "
         'frontend_attributes={always_sink="0"}', "stored, y", FORWARD,
         "buffer %n of %stored is not an element of the loop's state"),
        # Sinking
        (AR + "  low = f32[] constant(0)\n  row = f32[1,8] clamp(low, ar, low)\n"
         "  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)", "stored, y", SINK,
         "%row takes the scalar %low for all its elements"),
        (AR + "  row = f32[1,8] copy(ar)\n  bits = s32[1,8] bitcast-convert(row)\n"
         "  back = f32[1,8] bitcast(bits)\n"
         "  stored = f32[4,8] dynamic-update-slice(x, back, i, zero)", "stored, y", SINK,
         "%back is a bitcast, which cannot run for all trips at once"),
    ],
)  # fmt: skip
def test_what_stays(body: str, ends: str, options: dict[str, Any], reason: str) -> None:
    assert reasons(loop(body, ends=ends), **options) == [reason]


@pytest.mark.parametrize(
    ("body", "options"),
    [
        (AR + "  row = f32[1,8] add(ar, part)\n"
         "  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)", FORWARD),
        (AR + "  row = f32[1,8] custom-call(ar), custom_call_target=\"t\"\n"
         "  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)",
         {"pipeline_use_tree": False}),
        (AR + "  n = f32[4,8] negate(y)\n  stored = f32[4,8] dynamic-update-slice(n, ar, i, zero), "
         'frontend_attributes={always_sink="1"}', FORWARD),
        (AR + "  held = f32[4,8] opt-barrier(x)\n"
         "  stored = f32[4,8] dynamic-update-slice(held, ar, i, zero)", FORWARD),
        ("  flat = f32[8] reshape(part)\n"
         "  ar = f32[8] all-reduce(flat), replica_groups={}, to_apply=sum\n"
         "  e = f32[1] slice(ar), slice={[0:1]}\n  f = f32[] reshape(e)\n"
         "  at = s32[] convert(f)\n"
         "  row = f32[1,8] dynamic-slice(wide, zero, at), dynamic_slice_sizes={1,8}\n"
         "  stored = f32[4,8] dynamic-update-slice(x, row, i, zero)", FORWARD),
    ],
)  # fmt: skip
def test_what_moves(body: str, options: dict[str, Any]) -> None:
    if "(wide" in body:  # an index that is itself made of the result
        body = body.replace("  row =", "  wide = f32[1,16] concatenate(part, part), "
                            "dimensions={1}\n  row =")  # fmt: skip
    moves(loop(body), **options)


@pytest.mark.parametrize(
    ("own", "sum_reads", "options", "reason"),
    [
        # An element that changes, as a whole array
        ("  sent = f32[4,8] negate(x)", "sent", {},
         "it is computed from element 1 of the state, %x, which changes from trip to trip"),
        ("  sent = f32[4,8] negate(x)", "sent",
         {"should_allow_loop_variant_parameter_in_chain": lambda value: value.name == "y"},
         "it is computed from element 1 of the state, %x, which changes from trip to trip"),
        ("  sent = f32[4,8] negate(x)", "sent",
         {"should_allow_loop_variant_parameter_in_chain": True}, None),
        ("  sent = f32[4,8] negate(x)", "sent",
         {"should_allow_loop_variant_parameter_in_chain": lambda value: value.name == "x"}, None),
        ("  sent = f32[4,8] negate(y)", "sent", {}, None),
        # What else reads a value of the chain
        ("  sent = f32[4,8] negate(y)\n  side = f32[4,8] abs(sent)", "sent",
         {"should_add_loop_invariant_op_in_chain": False},
         "%side reads %sent too, which it is computed from, and "
         "should_add_loop_invariant_op_in_chain is off"),
        ("  sent = f32[4,8] negate(y)\n  side = f32[4,8] abs(sent)", "sent", {}, None),
        ("  n = s32[1] reshape(i)\n  f = f32[1] convert(n)\n  g = f32[] reshape(f)\n"
         "  side = f32[] abs(g)\n  sent = f32[4,8] broadcast(g), dimensions={}", "sent",
         {"should_add_loop_invariant_op_in_chain": False}, None),
        ("  side = f32[4,8] abs(y)\n  sent = f32[4,8] negate(y)", "sent",
         {"should_add_loop_invariant_op_in_chain": False}, None),
    ],
)  # fmt: skip
def test_chains_of_operands(
    own: str, sum_reads: str, options: dict[str, Any], reason: str | None
) -> None:
    body = f"""{own}
  ar = f32[4,8] all-reduce({sum_reads}), replica_groups={{}}, to_apply=sum
  stored = f32[4,8] add(x, ar)"""
    text = loop(body)
    if reason is None:
        moves(text, **BACKWARD, **options)
    else:
        assert reasons(text, **BACKWARD, **options) == [reason]


def test_a_number_that_changes_may_be_computed_from() -> None:
    """An element of one number counts as the counter does, as in XLA."""
    state = "(s32[], f32[4,8], f32[1,1])"
    body = """  wide = f32[4,8] broadcast(flat), dimensions={}
  ar = f32[4,8] all-reduce(wide), replica_groups={}, to_apply=sum
  stored = f32[4,8] add(x, ar)
  less = f32[1,1] negate(y)"""
    text = loop(body, ends="stored, less").replace("(s32[], f32[4,8], f32[4,8])", state)
    text = text.replace("y = f32[4,8]", "y = f32[1,1]").replace("y0 = f32[4,8]", "y0 = f32[1,1]")
    flat = "flat = f32[] reshape(y)"
    part = "part = f32[1,8] dynamic-slice(y, i, zero), dynamic_slice_sizes={1,8}"
    assert part in text
    moves(text.replace(part, flat), **BACKWARD)


@pytest.mark.parametrize(
    ("options", "left"),
    [({"max_pipelining_per_loop": 1}, ["br", "cr"]), ({"max_pipelining_per_loop": 2}, ["cr"])],
)
@pytest.mark.parametrize("way", [FORWARD, BACKWARD])
def test_the_last_moves_stay_at_the_limit(
    options: dict[str, Any], left: list[str], way: dict[str, Any]
) -> None:
    body = "\n".join(
        f"  {n}r = f32[1,8] all-reduce(part), replica_groups={{}}, to_apply=sum" for n in "abc"
    )
    state = "(s32[], f32[4,8], f32[4,8], f32[4,8], f32[4,8])"
    body += """
  z = f32[4,8] get-tuple-element(p), index=3
  v = f32[4,8] get-tuple-element(p), index=4
  first = f32[4,8] dynamic-update-slice(x, ar, i, zero)
  second = f32[4,8] dynamic-update-slice(z, br, i, zero)
  third = f32[4,8] dynamic-update-slice(v, cr, i, zero)"""
    text = loop(body, ends="first, y, second, third")
    text = text.replace("(s32[], f32[4,8], f32[4,8])", state)
    text = text.replace("tuple(start, x0, y0)", "tuple(start, x0, y0, x0, x0)")
    module = run_checked("collective-pipeliner", text, **options, **way)
    names = [i.name for i in module.computations["body"].instructions]
    # What was moved goes, or is a copy now; what stays keeps its name.
    assert [name for name in ("ar", "br", "cr") if name in names] == left


def test_a_loop_without_candidates_is_left_alone() -> None:
    text = loop(STORED.replace("all-reduce(part), replica_groups={}, to_apply=sum", "negate(part)"))
    for options in (FORWARD, SINK, BACKWARD):
        assert reasons(text, **options) == []


def test_collectives_in_calls_of_calls_are_named() -> None:
    """Each once, with the call that is nearest."""
    called = """inner {
  v = f32[1,8] parameter(0)
  ROOT ar = f32[1,8] all-reduce(v), replica_groups={}, to_apply=sum
}

outer {
  u = f32[1,8] parameter(0)
  ROOT called = f32[1,8] call(u), to_apply=inner
}

body {"""
    body = """  cr = f32[1,8] call(part), to_apply=outer
  again = f32[1,8] call(part), to_apply=outer
  both = f32[1,8] add(cr, again)
  stored = f32[4,8] dynamic-update-slice(x, both, i, zero)"""
    text = loop(body).replace("body {", called, 1)
    assert reasons(text) == ["it is in %inner, which %called calls: inline that first"]
