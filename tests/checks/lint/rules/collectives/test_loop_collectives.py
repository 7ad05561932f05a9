"""HLL102: collectives whose operands are the same in every trip."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

from hloopt.analysis.inventory.collectives import collectives_of
from hloopt.checks.subject import Subject
from hloopt.checks.view import View
from hloopt.cost_models import CostModelChoice
from hloopt.text import parse_module

GROUPS = "replica_groups={{0,1,2,3}}"
GATHER = f"g = f32[1024] all-gather(OPERAND), {GROUPS}, dimensions={{0}}"
STATE = "(s32[], f32[256], f32[1024])"


CALLED = f"""
sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT total = f32[] add(a, b)
}}

twice {{
  v = f32[256] parameter(0)
  ROOT t = f32[256] add(v, v)
}}

work {{
  u = f32[1024] parameter(0)
  k = f32[1024] parameter(1)
  ROOT m = f32[1024] multiply(u, k)
}}

gathering {{
  v.1 = f32[256] parameter(0)
  ROOT whole = f32[1024] all-gather(v.1), {GROUPS}, dimensions={{0}}
}}

draws {{
  v.2 = f32[256] parameter(0)
  low = f32[] constant(0)
  high = f32[] constant(1)
  ROOT drawn = f32[256] rng(low, high), distribution=rng_uniform
}}
"""


def loop(body: str, root: str = "next, w, y", trips: str = "8", entry: str = "") -> str:
    """A loop whose state is a counter, a shard `w`, and a value `x` that changes to `y`."""
    return f"""
HloModule m, is_scheduled=true, replica_count=4

{CALLED}

body {{
  state = {STATE} parameter(0)
  i = s32[] get-tuple-element(state), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  w = f32[256] get-tuple-element(state), index=1
  x = f32[1024] get-tuple-element(state), index=2
  {body}
  y = f32[1024] fusion(x, g), kind=kLoop, calls=work
  ROOT out = {STATE} tuple({root})
}}

condition {{
  state.1 = {STATE} parameter(0)
  i.1 = s32[] get-tuple-element(state.1), index=0
  n = s32[] constant({trips})
  ROOT less = pred[] compare(i.1, n), direction=LT
}}

ENTRY e {{
  w.0 = f32[256] parameter(0)
  x.0 = f32[1024] parameter(1)
  zero = s32[] constant(0)
  init = {STATE} tuple(zero, w.0, x.0)
  loop = {STATE} while(init), condition=condition, body=body
  {entry}
  ROOT last = f32[1024] get-tuple-element(loop), index=2
}}
"""


def gathered(operand: str, setup: str = "") -> str:
    return f"{setup}\n  {GATHER.replace('OPERAND', operand)}"


@pytest.mark.parametrize(
    "body",
    [
        gathered("w"),
        gathered("t", "t = f32[256] fusion(w), kind=kLoop, calls=twice"),
        gathered("t", "t = f32[256] call(w), to_apply=twice"),
        gathered("c", "k.1 = f32[] constant(3)\n  c = f32[256] broadcast(k.1), dimensions={}"),
        gathered("t", "p = u32[] replica-id()\n  f = f32[] convert(p)\n"
                 "  t = f32[256] broadcast(f), dimensions={}"),
        gathered("r", f"r = f32[256] all-reduce(w), {GROUPS}, channel_id=1, to_apply=sum"),
        gathered("d", 's = (s32[], f32[256], f32[1024]) opt-barrier(state)\n  '
                 'd = f32[256] custom-call(w), custom_call_target="f"'),
    ],
)  # fmt: skip
def test_operands_are_the_same_in_every_trip(body: str) -> None:
    assert "g" in found_names("HLL102", loop(body))


@pytest.mark.parametrize(
    "body",
    [
        # the state changes
        gathered("t", "t = f32[256] slice(x), slice={[0:256]}"),
        # in what the operand is computed from
        gathered("t", "f = f32[] convert(i)\n  t = f32[256] broadcast(f), dimensions={}"),
        # equal operands, other values
        gathered(
            "r",
            "l = f32[] constant(0)\n  h = f32[] constant(1)\n"
            "  r = f32[256] rng(l, h), distribution=rng_uniform",
        ),
        gathered("t", "t = f32[256] call(w), to_apply=draws"),
        gathered(
            "d",
            'd = f32[256] custom-call(w), custom_call_target="f", custom_call_has_side_effect=true',
        ),
    ],
)
def test_operands_may_differ_between_trips(body: str) -> None:
    assert not found_names("HLL102", loop(body))


def test_an_element_that_moves_in_the_state_is_another_in_the_next_trip() -> None:
    body = gathered("w", "v = f32[256] slice(x), slice={[0:256]}")
    assert not found_names("HLL102", loop(body, root="next, v, y"))


def test_a_copy_hands_on() -> None:
    assert found_names("HLL102", loop(gathered("w", "v = f32[256] copy(w)"), "next, v, y")) == ["g"]


@pytest.mark.parametrize(
    ("split", "name"),
    [
        (
            f"s = (f32[256], f32[1024]) all-gather-start(w), {GROUPS}, dimensions={{0}}\n"
            "  g = f32[1024] all-gather-done(s)",
            "s",
        ),
        (
            "s = ((f32[256]), f32[1024]) async-start(w), calls=gathering\n"
            "  g = f32[1024] async-done(s)",
            "s",
        ),
        ("g = f32[1024] fusion(w), kind=kCustom, calls=gathering", "g"),
    ],
)
def test_forms_count_once(split: str, name: str) -> None:
    (found,) = violations("HLL102", loop(split))
    assert found.location.instruction == name
    assert found.location.computation == "body"
    assert found.impact.moved == 7 * 4096 * 3 // 4


def test_a_collective_that_sends_nothing_is_left_to_another_rule() -> None:
    reduced = "g.1 = f32[256] all-reduce(w), replica_groups={GROUPS}, to_apply=sum"
    changes = gathered("t", "t = f32[256] slice(x), slice={[0:256]}")
    alone = reduced.replace("{GROUPS}", "{{0},{1},{2},{3}}")
    together = reduced.replace("{GROUPS}", "{{0,1},{2,3}}")
    assert not found_names("HLL102", loop(f"{alone}\n  {changes}"))
    assert found_names("HLL102", loop(f"{together}\n  {changes}")) == ["g.1"]


@pytest.mark.parametrize(("trips", "count"), [("0", 0), ("1", 0), ("2", 1)])
def test_one_trip_repeats_nothing(trips: str, count: int) -> None:
    found = violations("HLL102", loop(gathered("w"), trips=trips))
    assert [each.impact.moved for each in found] == [3072] * count


def test_a_collective_outside_of_loops_runs_once() -> None:
    text = loop(gathered("t", "t = f32[256] slice(x), slice={[0:256]}"), entry=(
        f"o = f32[1024] all-gather(w.0), {GROUPS}, dimensions={{0}}"))  # fmt: skip
    assert not found_names("HLL102", text)


def test_a_branch_is_not_taken_in_every_trip() -> None:
    branch = "p = pred[] constant(true)\n  g = f32[1024] conditional(p, w, w), " + (
        "true_computation=gathering, false_computation=gathering"
    )
    assert not found_names("HLL102", loop(branch))


def test_of_unknown_trips_there_is_no_impact() -> None:
    text = loop(gathered("w")).replace(
        "n = s32[] constant(8)",
        "x.2 = f32[1024] get-tuple-element(state.1), index=2\n  x.3 = f32[1] slice(x.2), "
        "slice={[0:1]}\n  x.4 = f32[] reshape(x.3)\n  n = s32[] convert(x.4)",
    )
    (found,) = violations("HLL102", text, target=None)
    assert "%g runs in each, once would do" in found.message
    assert found.impact.moved == 0


def test_two_loops_may_share_a_body() -> None:
    text = loop(gathered("w"), entry=f"again = {STATE} while(loop), condition=condition, body=body")
    (found,) = violations("HLL102", text)
    # the second loop begins where the first one ended, so its trips are not known
    assert [each.instruction for each in found.related] == ["loop", "again"]


def test_in_nested_loops_the_inner_one_counts() -> None:
    outer = """
outer_body {
  state.5 = STATE parameter(0)
  zero.5 = s32[] constant(0)
  i.5 = s32[] get-tuple-element(state.5), index=0
  one.5 = s32[] constant(1)
  next.5 = s32[] add(i.5, one.5)
  w.5 = f32[256] get-tuple-element(state.5), index=1
  x.5 = f32[1024] get-tuple-element(state.5), index=2
  init.5 = STATE tuple(zero.5, w.5, x.5)
  inner = STATE while(init.5), condition=condition, body=body
  y.5 = f32[1024] get-tuple-element(inner), index=2
  ROOT out.5 = STATE tuple(next.5, w.5, y.5)
}

outer_condition {
  state.6 = STATE parameter(0)
  i.6 = s32[] get-tuple-element(state.6), index=0
  n.6 = s32[] constant(3)
  ROOT less.6 = pred[] compare(i.6, n.6), direction=LT
}

ENTRY""".replace("STATE", STATE)
    text = loop(gathered("w")).replace("ENTRY", outer)
    text = text.replace("while(init), condition=condition, body=body",
                        "while(init), condition=outer_condition, body=outer_body")  # fmt: skip
    (found,) = violations("HLL102", text)
    assert "every trip of %inner: %g runs 24 times, 3 would do" in found.message
    assert found.impact.moved == 21 * 3072


def test_the_impact_is_the_difference_that_hoisting_makes() -> None:
    inside = loop(gathered("w"))
    before = f"w.1 = f32[1024] all-gather(w.0), {GROUPS}, dimensions={{0}}"
    hoisted = (
        inside.replace(gathered("w"), "g = f32[1024] get-tuple-element(state), index=1")
        .replace(STATE, "(s32[], f32[1024], f32[1024])")
        .replace("w = f32[256] get-tuple-element(state), index=1", "")
        .replace("tuple(next, w, y)", "tuple(next, g, y)")
        .replace("  init =", f"  {before}\n  init =")
        .replace("tuple(zero, w.0, x.0)", "tuple(zero, w.1, x.0)")
    )  # fmt: skip
    assert not found_names("HLL102", hoisted)
    (found,) = violations("HLL102", inside)
    (wire, time), (wire_after, time_after) = map(_costs, (inside, hoisted))
    assert found.impact.moved == wire - wire_after
    assert found.impact.seconds == pytest.approx(time - time_after, rel=0.01)
    assert found.impact.seconds > 0


def _costs(text: str) -> tuple[int, float]:
    subject = Subject("m.hlo", parse_module(text), CostModelChoice(target="h100_sxm"))
    view = View.of(subject)
    wire = sum(
        each.wire * view.runs(each.instruction).times for each in collectives_of(subject.module)
    )
    return wire, subject.schedule.simulation.makespan * (subject.schedule.unit.seconds or 0.0)


def test_a_module_that_is_not_partitioned_has_no_verdict() -> None:
    text = loop(gathered("w"), entry='o = f32[256] custom-call(w.0), custom_call_target="Sharding",'
                " sharding={devices=[4]<=[4]}")  # fmt: skip
    assert "not partitioned" in check("HLL102", text).reason
