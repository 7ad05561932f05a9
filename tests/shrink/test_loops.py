"""Trips of counted loops: fewer where they only count layers that get fewer too."""

from __future__ import annotations

import numpy as np
import pytest

from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Array
from hloopt.ir import Module
from hloopt.ir.opcode import Opcode
from hloopt.shrink import plan_shrink
from hloopt.text import parse_module
from hloopt.verifier import verify_module

LAYERS, WIDTH = 8, 64
STATE = "(s32[], f32[8,64], f32[64], f32[8,64])"
TRIPS = 'backend_config={"known_trip_count":{"n":"8"},"known_init_step":{"init":"0","step":"1"}}'

FORWARD = "at = s32[] copy(i)"
BACKWARD = "seven = s32[] constant(7)\n at = s32[] subtract(seven, i)"


def loop(
    index: str = FORWARD,
    *,
    start: str = "0",
    limit: str = "8",
    direction: str = "LT",
    step: str = "next = s32[] add(i, one)",
    more: str = "",
    result: str = "new",
    kept: str = "new_ys",
    root: str = "ROOT r = (f32[64], f32[8,64]) tuple(x_out, ys_out)",
    called: str = "",
) -> Module:
    """x = x · 2 + w[at] for each layer, collected in ys[at]."""
    return parse_module(
        f"""HloModule m
{called}
body {{ s = {STATE} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  w = f32[8,64] get-tuple-element(s), index=1
  x = f32[64] get-tuple-element(s), index=2
  ys = f32[8,64] get-tuple-element(s), index=3
  z = s32[] constant(0)
  one = s32[] constant(1)
  {index}
  row = f32[1,64] dynamic-slice(w, at, z), dynamic_slice_sizes={{1,64}}
  layer = f32[64] reshape(row)
  twice = f32[64] add(x, x)
  new = f32[64] add(twice, layer)
  update = f32[1,64] reshape(new)
  new_ys = f32[8,64] dynamic-update-slice(ys, update, at, z)
  {more}
  {step}
  ROOT t = {STATE} tuple(next, w, {result}, {kept}) }}
cond {{ s = {STATE} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  limit = s32[] constant({limit})
  ROOT r = pred[] compare(i, limit), direction={direction} }}
ENTRY e {{
  w = f32[8,64] parameter(0)
  x = f32[64] parameter(1)
  ys = f32[8,64] parameter(2)
  start = s32[] constant({start})
  t = {STATE} tuple(start, w, x, ys)
  l = {STATE} while(t), condition=cond, body=body, {TRIPS}
  x_out = f32[64] get-tuple-element(l), index=2
  ys_out = f32[8,64] get-tuple-element(l), index=3
  {root} }}"""
    )


WRAPPED = """
add_one { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT r = s32[] add(a, b) }
pick { whole = f32[8,64] parameter(0)
  at = s32[] parameter(1)
  z = s32[] constant(0)
  ROOT row = f32[1,64] dynamic-slice(whole, at, z), dynamic_slice_sizes={1,64} }"""

FEWER = {
    "forward": (loop(), False),
    "backward": (loop(BACKWARD), True),
    "backward in two steps": (
        loop("""eight = s32[] constant(8)
        left = s32[] subtract(eight, i)
        at = s32[] subtract(left, one)"""),
        True,
    ),
    "an index that would count from the end if it were negative": (
        loop("""eight = s32[] constant(8)
        is_negative = pred[] compare(i, z), direction=LT
        from_end = s32[] add(i, eight)
        at = s32[] select(is_negative, from_end, i)"""),
        False,
    ),
    "by way of fusions": (
        loop(
            "at = s32[] copy(i)\n f = f32[1,64] fusion(w, at), kind=kLoop, calls=pick",
            step="next = s32[] fusion(i, one), kind=kLoop, calls=add_one",
            called=WRAPPED,
        ),
        False,
    ),
}


@pytest.mark.parametrize("case", FEWER)
def test_trips_shrink_with_the_layers(case: str) -> None:
    module, is_backward = FEWER[case]
    small = plan_shrink([module], 0).apply(module)
    assert not verify_module(small)
    layers, width = small.entry.parameters[0].shape.dimensions
    assert (layers, width) == (2, 3)
    (while_,) = small.instructions(Opcode.WHILE)
    assert '"known_trip_count":{"n":"2"}' in while_.attributes["backend_config"]
    w = np.arange(6, dtype=np.float32).reshape(2, 3)
    x = np.ones(3, np.float32)
    ((found, collected),) = run_module(
        small, [[w, x, np.zeros((2, 3), np.float32)]], devices=devices_of(1, 1)
    )
    expected, rows = in_numpy(w, x, is_backward)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(collected, rows)


def in_numpy(w: Array, x: Array, is_backward: bool) -> tuple[Array, Array]:
    rows = np.zeros_like(w)
    order = range(len(w))
    for number in reversed(order) if is_backward else order:
        x = rows[number] = x * 2 + w[number]
    return x, rows


STAYS = {
    "the counter is a value": loop(
        more="""number = f32[] convert(i)
        numbers = f32[64] broadcast(number), dimensions={}
        other = f32[64] add(new, numbers)""",
        result="other",
    ),
    "the counter is a result": loop(
        root="n = s32[] get-tuple-element(l), index=0\n"
        "ROOT r = (f32[64], f32[8,64], s32[]) tuple(x_out, ys_out, n)"
    ),
    "part of the state depends on the trips alone": loop(result="twice"),
    "the first trip has another number": loop(start="1"),
    "every other layer": loop(step="two = s32[] constant(2)\n next = s32[] add(i, two)"),
    "one trip less": loop(limit="7"),
    "one trip more": loop(direction="LE"),
    "the next layer": loop("at = s32[] add(i, one)"),
    "the layer before the last one first": loop(
        "six = s32[] constant(6)\n at = s32[] subtract(six, i)"
    ),
    "twice the counter": loop("at = s32[] add(i, i)"),
    "the largest of two": loop("at = s32[] maximum(i, one)"),
    "other values for each layer": loop(
        root="""c = f32[8] constant({1, 2, 3, 4, 5, 6, 7, 8})
        values = f32[8,64] broadcast(c), dimensions={0}
        sum = f32[8,64] add(ys_out, values)
        ROOT r = (f32[64], f32[8,64]) tuple(x_out, sum)"""
    ),
    "a function gets two of them": loop(
        """seven = s32[] constant(7)
        back = s32[] subtract(seven, i)
        at = s32[] copy(i)
        there = f32[1,64] call(w, i), to_apply=pick
        here = f32[1,64] call(w, back), to_apply=pick""",
        called=WRAPPED,
    ),
}


@pytest.mark.parametrize("case", STAYS)
def test_trips_stay_where_more_depends_on_them(case: str) -> None:
    module = STAYS[case]
    plan = plan_shrink([module], 0)
    small = plan.apply(module)
    assert small.entry.parameters[0].shape.dimensions[0] == LAYERS
    (while_,) = small.instructions(Opcode.WHILE)
    assert TRIPS.partition("=")[2] == while_.attributes["backend_config"]
    assert any(line.startswith("8 stays: ") for line in plan.describe())


BRANCHES = """
take { pair1 = (f32[8,64], s32[]) parameter(0)
  w1 = f32[8,64] get-tuple-element(pair1), index=0
  at1 = s32[] get-tuple-element(pair1), index=1
  z1 = s32[] constant(0)
  ROOT row1 = f32[1,64] dynamic-slice(w1, at1, z1), dynamic_slice_sizes={1,64} }
leave { pair2 = (f32[8,64], s32[]) parameter(0)
  zero2 = f32[] constant(0)
  ROOT row2 = f32[1,64] broadcast(zero2), dimensions={} }
place { pair3 = (f32[8,64], s32[]) parameter(0)
  ROOT at3 = s32[] get-tuple-element(pair3), index=1 }
third { pair4 = (f32[8,64], s32[]) parameter(0)
  ROOT at4 = s32[] constant(3) }
"""
CHOICE = """flag = pred[] constant(true)
  pair = (f32[8,64], s32[]) tuple(w, i)
  chosen = {shape} conditional(flag, pair, pair), true_computation={taken},
    false_computation={other}
  {row}
  flat = f32[64] reshape(chosen_row)
  more = f32[64] add(new, flat)"""
INNER = """
turn {{ s5 = (s32[], s32[], f32[8,64], f32[1,64]) parameter(0)
  j5 = s32[] get-tuple-element(s5), index=0
  i5 = s32[] get-tuple-element(s5), index=1
  w5 = f32[8,64] get-tuple-element(s5), index=2
  sum5 = f32[1,64] get-tuple-element(s5), index=3
  z5 = s32[] constant(0)
  one5 = s32[] constant(1)
  row5 = f32[1,64] dynamic-slice(w5, i5, z5), dynamic_slice_sizes={{1,64}}
  new5 = f32[1,64] add(sum5, row5)
  next5 = s32[] add(j5, one5)
  {outer}
  ROOT t5 = (s32[], s32[], f32[8,64], f32[1,64]) tuple(next5, i6, w5, new5) }}
goes_on {{ s7 = (s32[], s32[], f32[8,64], f32[1,64]) parameter(0)
  j7 = s32[] get-tuple-element(s7), index=0
  limit7 = s32[] constant(3)
  ROOT r7 = pred[] compare(j7, limit7), direction=LT }}
"""
TURNS = """inner_state = (s32[], s32[], f32[8,64], f32[1,64]) tuple(z, i, w, row)
  inner = (s32[], s32[], f32[8,64], f32[1,64]) while(inner_state), condition=goes_on, body=turn
  sum = f32[1,64] get-tuple-element(inner), index=3
  flat = f32[64] reshape(sum)
  more = f32[64] add(new, flat)"""

NESTED = {
    "a branch takes the layer": (
        loop(
            more=CHOICE.format(
                shape="f32[1,64]",
                taken="take",
                other="leave",
                row="chosen_row = f32[1,64] copy(chosen)",
            ),
            result="more",
            called=BRANCHES,
        ),
        2,
    ),
    "a branch gives another index": (
        loop(
            more=CHOICE.format(
                shape="s32[]",
                taken="place",
                other="third",
                row="chosen_row = f32[1,64] dynamic-slice(w, chosen, z), "
                "dynamic_slice_sizes={1,64}",
            ),
            result="more",
            called=BRANCHES,
        ),
        LAYERS,
    ),
    "a loop inside uses the layer": (
        loop(more=TURNS, result="more", called=INNER.format(outer="i6 = s32[] copy(i5)")),
        2,
    ),
    "a loop inside goes on to other layers": (
        loop(more=TURNS, result="more", called=INNER.format(outer="i6 = s32[] add(i5, one5)")),
        LAYERS,
    ),
}


@pytest.mark.parametrize("case", NESTED)
def test_counters_are_followed_into_branches_and_loops(case: str) -> None:
    module, layers = NESTED[case]
    assert not verify_module(module)
    small = plan_shrink([module], 0).apply(module)
    assert not verify_module(small)
    assert small.entry.parameters[0].shape.dimensions[0] == layers


def test_a_loop_and_what_it_was_unrolled_to_keep_their_layers() -> None:
    looped = loop(root="ROOT r = f32[64] add(x_out, x_out)")
    rows = "\n".join(
        f"r{n} = f32[1,64] slice(w), slice={{[{n}:{n + 1}], [0:64]}}\n"
        f"l{n} = f32[64] reshape(r{n})\n t{n} = f32[64] add(x{n}, x{n})\n"
        f"x{n + 1} = f32[64] add(t{n}, l{n})"
        for n in range(LAYERS)
    )
    unrolled = parse_module(
        f"HloModule m\nENTRY e {{ w = f32[8,64] parameter(0)\n x0 = f32[64] parameter(1)\n"
        f"ys = f32[8,64] parameter(2)\n{rows}\n ROOT r = f32[64] add(x8, x8) }}"
    )
    plan = plan_shrink([looped, unrolled], 0)
    w = np.arange(LAYERS * 2, dtype=np.float32).reshape(LAYERS, 2)
    arguments = [w, np.ones(2, np.float32), np.zeros_like(w)]
    outputs = [
        run_module(plan.apply(module), [arguments], devices=devices_of(1, 1))[0]
        for module in (looped, unrolled)
    ]
    np.testing.assert_array_equal(*outputs)


def test_the_budget_counts_the_trips_that_are_left() -> None:
    plan = plan_shrink([loop()], 100)
    assert plan.after[0] <= 100 < 6000 < plan.before[0]


def two_more(a: str, b: str, start: str = "p, q") -> Module:
    """Element 1 is a layer, element 2 a sum; elements 3 and 4 become `a` and `b`."""
    state = "(s32[], f32[8,64], f32[64], f32[64], f32[64])"
    return parse_module(f"""HloModule m
body {{ s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  w = f32[8,64] get-tuple-element(s), index=1
  x = f32[64] get-tuple-element(s), index=2
  a = f32[64] get-tuple-element(s), index=3
  b = f32[64] get-tuple-element(s), index=4
  start = (f32[64], f32[64], u32[]) copy-start(b)
  done = f32[64] copy-done(start)
  changed = f32[64] negate(b)
  z = s32[] constant(0)
  one = s32[] constant(1)
  row = f32[1,64] dynamic-slice(w, i, z), dynamic_slice_sizes={{1,64}}
  layer = f32[64] reshape(row)
  sum = f32[64] add(layer, a)
  new = f32[64] add(x, sum)
  next = s32[] add(i, one)
  ROOT t = {state} tuple(next, w, new, {a}, {b}) }}
cond {{ s = {state} parameter(0)
  i = s32[] get-tuple-element(s), index=0
  limit = s32[] constant(8)
  ROOT r = pred[] compare(i, limit), direction=LT }}
ENTRY e {{ w = f32[8,64] parameter(0)
  p = f32[64] parameter(1)
  other = f32[64] parameter(2)
  q = f32[64] copy(p)
  z = s32[] constant(0)
  state = {state} tuple(z, w, other, {start})
  loop = {state} while(state), condition=cond, body=body, {TRIPS}
  ROOT r = f32[64] get-tuple-element(loop), index=2 }}
""")


@pytest.mark.parametrize(
    ("module", "layers"),
    [
        (two_more("a", "b"), 2),
        (two_more("a", "done"), 2),
        (two_more("done", "b"), 2),
        (two_more("done", "a"), 2),
        (two_more("done", "b", "p, other"), LAYERS),
        (two_more("done", "changed"), LAYERS),
    ],
    ids=["both", "copied", "one of the other", "exchanged", "other start", "the other changes"],
)
def test_state_that_stays_does_not_depend_on_trips(module: Module, layers: int) -> None:
    assert not verify_module(module)
    small = plan_shrink([module], 0).apply(module)
    assert small.entry.parameters[0].shape.dimensions[0] == layers
