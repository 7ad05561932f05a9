"""HLL104: small collectives that could be one."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

from hloopt.analysis.inventory.collectives import collectives_of
from hloopt.checks.subject import Subject
from hloopt.cost_models import CostModelChoice
from hloopt.pass_framework.base import PassContext
from hloopt.passes.collectives.collective_combiner.passes import AllReduceCombiner
from hloopt.text import parse_module

ALL = "replica_groups={{0,1,2,3,4,5,6,7}}"
HALVES = "replica_groups={{0,1,2,3},{4,5,6,7}}"
REDUCE = f"{ALL}, to_apply=sum"


def module(body: str, header: str = "is_scheduled=true, ") -> str:
    return f"""
HloModule m, {header}replica_count=8

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}}

most {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] maximum(a, b)
}}

work {{
  v = f32[1024] parameter(0)
  ROOT n = f32[1024] negate(v)
}}

scattering {{
  v = f32[1024] parameter(0)
  ROOT part = f32[128] reduce-scatter(v), {REDUCE}, dimensions={{0}}
}}

ENTRY e {{
  p = f32[1024] parameter(0)
  q = f32[1024] parameter(1)
  {body}
}}
"""


def two(first: str, second: str, between: str = "") -> str:
    return f"""x = {first}
  {between}
  y = {second}
  ROOT t = (f32[1024], f32[1024]) tuple(x, y)"""


@pytest.mark.parametrize(
    "body",
    [
        two(f"f32[1024] all-reduce(p), {REDUCE}", f"f32[1024] all-reduce(q), {REDUCE}"),
        # equal groups in other words
        two(
            f"f32[1024] all-reduce(p), {REDUCE}",
            "f32[1024] all-reduce(q), replica_groups=[1,8]<=[8], to_apply=sum",
        ),
        # work that reads neither
        two(
            f"f32[1024] all-reduce(p), {REDUCE}",
            f"f32[1024] all-reduce(w), {REDUCE}",
            "w = f32[1024] fusion(q), kind=kLoop, calls=work",
        ),
        # a use of the first that is behind the operand of the second
        two(
            f"f32[1024] all-reduce(p), {REDUCE}",
            f"f32[1024] all-reduce(w), {REDUCE}",
            "w = f32[1024] fusion(q), kind=kLoop, calls=work\n  u = f32[1024] cosine(x)",
        ),
        # what costs nothing has no place
        two(
            f"f32[1024] all-reduce(p), {REDUCE}",
            f"f32[1024] all-reduce(f), {REDUCE}",
            "u = f32[1024] bitcast(x)\n  f = f32[1024] bitcast(q)",
        ),
    ],
)
def test_two_could_be_one(body: str) -> None:
    (found,) = violations("HLL104", module(body))
    assert found.message.startswith("%x and 1 other of its kind could be one, of 8.0 KiB")
    assert [each.instruction for each in found.related] == ["y"]


@pytest.mark.parametrize(
    "body",
    [
        # one alone
        two(f"f32[1024] all-reduce(p), {REDUCE}", "f32[1024] copy(q)"),
        # another kind, other groups, another reduction
        two(
            f"f32[1024] all-reduce(p), {REDUCE}",
            f"f32[8192] all-gather(q), {ALL}, dimensions={{0}}",
        ).replace("(f32[1024], f32[1024])", "(f32[1024], f32[8192])"),
        two(
            f"f32[1024] all-reduce(p), {REDUCE}", f"f32[1024] all-reduce(q), {HALVES}, to_apply=sum"
        ),
        two(f"f32[1024] all-reduce(p), {REDUCE}", f"f32[1024] all-reduce(q), {ALL}, to_apply=most"),
        # the second depends on the first
        two(f"f32[1024] all-reduce(p), {REDUCE}", f"f32[1024] all-reduce(x), {REDUCE}"),
        # the schedule uses the first before the operand of the second is there
        two(
            f"f32[1024] all-reduce(p), {REDUCE}",
            f"f32[1024] all-reduce(w), {REDUCE}",
            "u = f32[1024] cosine(x)\n  w = f32[1024] fusion(q), kind=kLoop, calls=work",
        ),
        # a combiner has done it
        f"ROOT t = (f32[1024], f32[1024]) all-reduce(p, q), {REDUCE}",
        # nothing to send
        two(f"f32[0] all-reduce(z), {REDUCE}", f"f32[0] all-reduce(z), {REDUCE}")
        .replace("x = ", "z = f32[0] constant({})\n  x = ")
        .replace("(f32[1024], f32[1024])", "(f32[0], f32[0])"),
    ],
)
def test_two_could_not(body: str) -> None:
    assert not found_names("HLL104", module(body))


def test_those_of_different_computations_stay_apart() -> None:
    branches = f"""
one {{
  v.1 = f32[1024] parameter(0)
  ROOT r.1 = f32[1024] all-reduce(v.1), {REDUCE}
}}

other {{
  v.2 = f32[1024] parameter(0)
  ROOT r.2 = f32[1024] all-reduce(v.2), {REDUCE}
}}

ENTRY"""
    body = (
        "c = pred[] constant(true)\n  ROOT r = f32[1024] conditional(c, p, q), "
        "true_computation=one, false_computation=other"
    )
    assert not found_names("HLL104", module(body).replace("ENTRY", branches))


def test_split_and_wrapped_ones_are_found_by_their_starts() -> None:
    pairs = f"""x.start = f32[1024] all-reduce-start(p), {REDUCE}
  y.start = f32[1024] all-reduce-start(q), {REDUCE}
  v.start = ((f32[1024]), f32[128]) async-start(p), calls=scattering
  w = f32[1024] fusion(q), kind=kLoop, calls=work
  x.done = f32[1024] all-reduce-done(x.start)
  y.done = f32[1024] all-reduce-done(y.start)
  v.done = f32[128] async-done(v.start)
  u.start = ((f32[1024]), f32[128]) async-start(w), calls=scattering.1
  u.done = f32[128] async-done(u.start)
  ROOT t = (f32[1024], f32[1024], f32[128], f32[128]) tuple(x.done, y.done, v.done, u.done)"""
    again = f"""scattering.1 {{
  v.5 = f32[1024] parameter(0)
  ROOT part.5 = f32[128] reduce-scatter(v.5), {REDUCE}, dimensions={{0}}
}}

ENTRY"""
    found = violations("HLL104", module(pairs).replace("ENTRY", again))
    groups = {each.location.instruction: each.related[0].instruction for each in found}
    assert groups == {"x.start": "y.start", "v.start": "u.start"}


def test_three_are_one_group_and_a_use_between_parts_them() -> None:
    body = f"""x = f32[1024] all-reduce(p), {REDUCE}
  y = f32[1024] all-reduce(q), {REDUCE}
  USE
  z = f32[1024] all-reduce(w), {REDUCE}
  v = f32[1024] all-reduce(w), {REDUCE}
  ROOT t = (f32[1024], f32[1024], f32[1024], f32[1024]) tuple(x, y, z, v)"""
    last = "w = f32[1024] fusion(p), kind=kLoop, calls=work"
    (found,) = violations("HLL104", module(body.replace("USE", last)))
    assert "%x and 3 others" in found.message
    first = "u = f32[1024] cosine(x)\n  "
    assert sorted(found_names("HLL104", module(body.replace("USE", first + last)))) == ["x", "z"]


def test_the_option_is_the_size_of_one() -> None:
    body = two(f"f32[1024] all-reduce(p), {REDUCE}", f"f32[1024] all-reduce(q), {REDUCE}")
    assert not found_names("HLL104", module(body), size=4095)
    assert found_names("HLL104", module(body), size=4096) == ["x"]


def test_of_a_reduce_scatter_the_result_counts() -> None:
    body = """x = f32[128] reduce-scatter(p), GROUPS, dimensions={0}
  y = f32[128] reduce-scatter(q), GROUPS, dimensions={0}
  ROOT t = (f32[128], f32[128]) tuple(x, y)""".replace("GROUPS", REDUCE)
    assert not found_names("HLL104", module(body), size=511)
    assert found_names("HLL104", module(body), size=512) == ["x"]


def test_the_time_is_the_difference_of_two_models() -> None:
    text = module(two(f"f32[1024] all-reduce(p), {REDUCE}", f"f32[1024] all-reduce(q), {REDUCE}"))
    (found,) = violations("HLL104", text)
    (apart, makespan), (together, makespan_after) = _times(text), _times(text, combine=True)
    assert found.impact.seconds == pytest.approx(apart - together)
    assert found.impact.seconds == pytest.approx(makespan - makespan_after, rel=0.01)
    assert found.impact.seconds > 5e-6
    assert not violations("HLL104", text, target=None)[0].impact.seconds


def _times(text: str, *, combine: bool = False) -> tuple[float, float]:
    """Seconds of the collectives one after the other, and of a run."""
    module = parse_module(text)
    if combine:
        assert AllReduceCombiner().run(module, PassContext())
    schedule = Subject("m.hlo", module, CostModelChoice(target="h100_sxm")).schedule
    model, scale = schedule.simulation.model, schedule.unit.seconds or 0.0
    busy = sum(model.whole_time(each.instruction).cycles for each in collectives_of(module))
    return busy * scale, schedule.simulation.makespan * scale


def test_a_module_that_is_not_scheduled_has_no_verdict() -> None:
    body = two(f"f32[1024] all-reduce(p), {REDUCE}", f"f32[1024] all-reduce(q), {REDUCE}")
    assert "not scheduled" in check("HLL104", module(body, header="")).reason


@pytest.mark.parametrize(("size", "is_found"), [(1024, True), (1 << 30, False)])
def test_what_other_work_hides_is_left_alone(size: int, is_found: bool) -> None:
    work = (
        f"large {{\n  l = f32[{size}] parameter(0)\n  ROOT m = f32[{size}] negate(l)\n}}\n\nENTRY"
    )
    body = f"""big = f32[{size}] parameter(2)
  x.start = f32[1024] all-reduce-start(p), {REDUCE}
  y.start = f32[1024] all-reduce-start(q), {REDUCE}
  w = f32[{size}] fusion(big), kind=kLoop, calls=large
  x.done = f32[1024] all-reduce-done(x.start)
  y.done = f32[1024] all-reduce-done(y.start)
  ROOT t = (f32[1024], f32[1024], f32[{size}]) tuple(x.done, y.done, w)"""
    text = module(body).replace("ENTRY", work)
    assert bool(found_names("HLL104", text)) == is_found
    assert found_names("HLL104", text, target=None) == ["x.start"]
