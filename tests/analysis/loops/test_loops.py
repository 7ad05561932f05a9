"""The number of trips loops make: against counting them, and the reasons where that is not
known."""

from __future__ import annotations

import itertools
import operator

import pytest

from hloopt.analysis.loops.annotation import known_trip_count
from hloopt.analysis.loops.induction import initial_value, plus_constant
from hloopt.analysis.loops.sources import source_of
from hloopt.analysis.loops.trip_count import LoopTrips, loop_trips, trip_count
from hloopt.ir import Instruction, Module, Opcode
from hloopt.text import parse_module

LOOP = """HloModule m
body {{
  p = ({type}[], f32[4]) parameter(0)
  i = {type}[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  step = {type}[] constant({step})
  next = {type}[] {update}
  ROOT t = ({type}[], f32[4]) tuple(next, x)
}}
condition {{
  q = ({type}[], f32[4]) parameter(0)
  j = {type}[] get-tuple-element(q), index=0
  limit = {type}[] constant({limit})
  ROOT c = pred[] {condition}
}}
ENTRY e {{
  x = f32[4] parameter(0)
  n = {type}[] parameter(1)
  init = {type}[] constant({init})
  state = ({type}[], f32[4]) tuple({first}, x)
  ROOT w = ({type}[], f32[4]) while(state), condition=condition, body=body{config}
}}
"""
COMPARE = {
    **{"LT": operator.lt, "LE": operator.le, "GT": operator.gt, "GE": operator.ge},
    **{"EQ": operator.eq, "NE": operator.ne},
}


def loop_module(**parts: object) -> Module:
    text = {
        **{"type": "s32", "init": 0, "step": 1, "limit": 10, "first": "init", "config": ""},
        **{"update": "add(i, step)", "condition": "compare(j, limit), direction=LT"},
        **parts,
    }
    return parse_module(LOOP.format(**text))


def loops(module: Module) -> list[Instruction]:
    return list(module.instructions(Opcode.WHILE))


def trips_of(module: Module) -> LoopTrips:
    return loop_trips(loops(module)[-1])


def counted(kind: str, init: int, step: int, limit: int, direction: str) -> int | None:
    """Trips by counting; None where the counter comes back to a value it had."""
    low, high = (-128, 127) if kind == "s8" else (0, 255)
    value, trips = init, 0
    while COMPARE[direction](value, limit):
        value = (value + step - low) % 256 + low
        trips += 1
        if trips > 256:
            return None
    assert low <= value <= high
    return trips


@pytest.mark.parametrize("direction", COMPARE)
@pytest.mark.parametrize("kind", ["s8", "u8"])
def test_trips_are_those_that_counting_finds(kind: str, direction: str) -> None:
    """Where the counter wraps around, or needs long, nothing is claimed; else it is exact."""
    edges = (-128, -127, -3, 0, 1, 100, 126, 127) if kind == "s8" else (0, 1, 2, 128, 254, 255)
    steps = (-100, -2, -1, 0, 1, 2, 3, 127) if kind == "s8" else (0, 1, 2, 5, 254, 255)
    known = 0
    for init, limit, step in itertools.product(edges, edges, steps):
        module = loop_module(
            **{"type": kind, "init": init, "limit": limit, "step": step},
            condition=f"compare(j, limit), direction={direction}",
        )
        found = trips_of(module).computed
        expected = counted(kind, init, step, limit, direction)
        assert found in (expected, None), (init, limit, step)
        if expected is None or expected <= 128:
            assert found == expected, (init, limit, step)
        known += found is not None
    assert known


@pytest.mark.parametrize(
    ("parts", "trips"),
    [
        ({}, 10),
        ({"init": -(2**31), "limit": 2**31 - 1}, 2**32 - 1),
        ({"update": "add(step, i)", "step": 3}, 4),
        ({"update": "subtract(i, step)", "step": -1}, 10),
        ({"condition": "compare(limit, j), direction=GT"}, 10),
        ({"condition": "compare(limit, j), direction=GE"}, 11),
        ({"update": "multiply(i, step)", "init": 1, "step": 2, "limit": 1000}, 10),
    ],
)
def test_counters_of_many_forms(parts: dict[str, object], trips: int) -> None:
    assert trip_count(loops(loop_module(**parts))[0]) == trips


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"first": "n"}, "the initial value of its counter, element 0, is not constant"),
        ({"step": 0}, "it never ends: nothing changes its counter"),
        ({"step": -1}, "its counter does not reach the limit without overflow"),
        (
            {"update": "multiply(i, step)", "step": 1, "init": 1},
            "it makes more than 128 trips, its counter has no constant step",
        ),
        ({"condition": "constant(true)"}, "it never ends: its condition is constant"),
    ],
)
def test_why_trips_are_not_known(parts: dict[str, object], reason: str) -> None:
    found = trips_of(loop_module(**parts))
    assert found.computed is None
    assert found.reason == reason


def test_a_counter_starts_with_a_sum_of_constants() -> None:
    """As it does where trips were peeled off; it is wrapped: 250 + 10 + 10 is 14 in eight bits."""
    sums = "ten = u8[] constant(10) a = u8[] add(init, ten) b = u8[] add(ten, a) state ="
    parts = {"type": "u8", "init": 250, "step": 1, "limit": 20, "first": "b", "config": ""}
    rules = {"update": "add(i, step)", "condition": "compare(j, limit), direction=LT"}
    text = LOOP.format(**parts, **rules).replace("state =", sums)
    [loop] = loops(parse_module(text))
    assert initial_value(loop, 0) == 14
    assert trip_count(loop) == 6


def test_an_endless_counter_of_64_bits_is_no_trip_count() -> None:
    edges = {"type": "s64", "init": -(2**63), "limit": 2**63 - 1}
    found = trips_of(loop_module(**edges, condition="compare(j, limit), direction=LE"))
    assert (found.computed, found.element) == (None, 0)


def test_a_constant_condition_that_is_false_makes_no_trip() -> None:
    assert trip_count(loops(loop_module(condition="constant(false)"))[0]) == 0


@pytest.mark.parametrize(
    "config",
    [
        ', backend_config={"known_trip_count":{"n":"12"}}',
        ', backend_config="{\\"known_trip_count\\":{\\"n\\":\\"12\\"}}"',
        ', backend_config={"known_trip_count":{"n":12}}',
    ],
)
def test_what_is_stated_counts_where_nothing_else_tells(config: str) -> None:
    unknown = trips_of(loop_module(first="n", config=config))
    assert (unknown.count, unknown.stated, unknown.disagrees) == (12, 12, False)
    other = trips_of(loop_module(config=config))
    assert (other.count, other.stated, other.disagrees) == (10, 12, True)


@pytest.mark.parametrize(
    ("config", "stated"),
    [
        ("", None),
        (', backend_config="no JSON"', None),
        (', backend_config={"known_trip_count":{}}', 0),
        (', backend_config={"known_trip_count":{"n":"x"}}', None),
        (', backend_config={"known_trip_count":{"n":"-10"}}', None),
        (', backend_config={"known_trip_count":3}', None),
        (f', backend_config="{"[" * 100_000}"', None),
    ],
)
def test_a_backend_config_of_another_form_states_nothing(config: str, stated: int | None) -> None:
    assert known_trip_count(loops(loop_module(config=config))[0]) == stated


NESTED = """HloModule m
plus { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
less { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = pred[] compare(a, b), direction=LT }
inner_body {
  p = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  limit = s32[] get-tuple-element(p), index=1
  one = s32[] constant(1)
  next = s32[] fusion(i, one), kind=kLoop, calls=plus
  kept = s32[] copy(limit)
  ROOT t = (s32[], s32[]) tuple(next, kept)
}
inner_condition {
  p = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  limit = s32[] get-tuple-element(p), index=1
  ROOT c = pred[] fusion(i, limit), kind=kLoop, calls=less
}
body {
  p = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  limit = s32[] get-tuple-element(p), index=1
  zero = s32[] constant(0)
  state = (s32[], s32[]) tuple(zero, limit)
  w = (s32[], s32[]) while(state), condition=inner_condition, body=inner_body
  end = s32[] get-tuple-element(w), index=1
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT t = (s32[], s32[]) tuple(next, limit)
}
condition {
  p = (s32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  three = s32[] constant(3)
  ROOT c = pred[] compare(i, three), direction=LT
}
ENTRY e {
  zero = s32[] constant(0)
  seven = s32[] constant(7)
  state = (s32[], s32[]) tuple(zero, seven)
  ROOT w = (s32[], s32[]) while(state), condition=condition, body=body
}
"""


def test_a_limit_is_followed_through_loops_copies_and_fusions() -> None:
    module = parse_module(NESTED)
    assert [trip_count(loop) for loop in loops(module)] == [7, 3]
    end = next(i for i in module.instructions() if i.name == "end")
    source = source_of(end)
    assert (source.instruction.name, source.path) == ("seven", ())


def test_a_constant_is_found_through_sixty_loops() -> None:
    parts = ["HloModule m", "body0 { ROOT p = (s32[]) parameter(0) }"]
    condition = "condition{} {{ p = (s32[]) parameter(0) ROOT t = pred[] constant(true) }}"
    for depth in range(1, 60):
        parts += [
            condition.format(depth),
            f"body{depth} {{ p = (s32[]) parameter(0) i = s32[] get-tuple-element(p), index=0 "
            f"s = (s32[]) tuple(i) w = (s32[]) while(s), condition=condition{depth}, "
            f"body=body{depth - 1} ROOT r = (s32[]) tuple(i) }}",
        ]
    parts += [
        condition.format(60),
        "ENTRY e { n = s32[] constant(5) s = (s32[]) tuple(n) "
        "ROOT w = (s32[]) while(s), condition=condition60, body=body59 }",
    ]
    innermost = loops(parse_module("\n".join(parts)))[0]
    source = source_of(innermost.operands[0].operands[0])
    assert (source.instruction.name, source.instruction.payload) == ("n", "5")


def test_a_value_that_is_handed_on_too_often_is_not_followed_to_the_end() -> None:
    copies = "".join(f"  copy.{n} = f32[] copy(copy.{n - 1})\n" for n in range(1, 2000))
    module = parse_module(f"ENTRY e {{\n  copy.0 = f32[] parameter(0)\n{copies}}}\n")
    values = {i.name: i for i in module.entry.instructions}
    assert source_of(values["copy.200"]).instruction.name == "copy.0"
    assert source_of(values["copy.1999"]).instruction.opcode is Opcode.COPY


def test_a_sum_of_too_many_constants_is_not_followed_to_the_end() -> None:
    sums = "".join(f"  a.{n} = s32[] add(a.{n - 1}, one)\n" for n in range(1, 1000))
    module = parse_module(
        f"ENTRY e {{\n  a.0 = s32[] parameter(0)\n  one = s32[] constant(1)\n{sums}}}\n"
    )
    values = {i.name: i for i in module.entry.instructions}
    assert plus_constant(values["a.60"]) == ((values["a.0"], ()), 60)
    source, total = plus_constant(values["a.999"])
    assert source.instruction.name == f"a.{999 - total}"
