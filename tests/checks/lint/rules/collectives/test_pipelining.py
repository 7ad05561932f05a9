"""HLL103: collectives that the pipeliner moves to another trip."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations

from hloopt.checks.subject import Subject
from hloopt.cost_models import CostModelChoice
from hloopt.pass_framework.base import PassContext
from hloopt.passes.collectives.collective_pipeliner import CollectivePipeliner
from hloopt.text import parse_module
from hloopt.text.printer import print_module

STATE = "(s32[], f32[6,4], f32[6,4])"
GROUPS = "replica_groups={{0,1}}"
FORWARD = f"r = f32[1,4] all-reduce(y), {GROUPS}, to_apply=sum"
BACKWARD = f"r = f32[1,4] all-gather(x), {GROUPS}, dimensions={{1}}"
PIPELINED = 'backend_config={"collective_backend_config":{"is_pipelined":true}}'

TEXT = f"""
HloModule m, HEADERreplica_count=2

sum {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

square {{
  v = f32[1,4] parameter(0)
  ROOT q = f32[1,4] multiply(v, v)
}}

body {{
  p = {STATE} parameter(0)
  i = s32[] get-tuple-element(p), index=0
  out = f32[6,4] get-tuple-element(p), index=1
  in = f32[6,4] get-tuple-element(p), index=2
  one = s32[] constant(1)
  next = s32[] add(i, one)
  zero = s32[] constant(0)
  x = f32[1,4] dynamic-slice(in, i, zero), dynamic_slice_sizes={{1,4}}
  y = f32[1,4] fusion(x), kind=kLoop, calls=square
  COLLECTIVE
  new = f32[6,4] dynamic-update-slice(out, r, i, zero)
  ROOT t = {STATE} tuple(next, new, in)
}}

condition {{
  p.1 = {STATE} parameter(0)
  i.1 = s32[] get-tuple-element(p.1), index=0
  n = s32[] constant(TRIPS)
  ROOT less = pred[] compare(i.1, n), direction=LT
}}

ENTRY main {{
  out.1 = f32[6,4] parameter(0)
  in.1 = f32[6,4] parameter(1)
  zero.1 = s32[] constant(0)
  init = {STATE} tuple(zero.1, out.1, in.1)
  w = {STATE} while(init), condition=condition, body=body
  ROOT last = f32[6,4] get-tuple-element(w), index=1
}}
"""


def loop(collective: str, header: str = "", trips: str = "6") -> str:
    text = TEXT.replace("COLLECTIVE", collective)
    return text.replace("HEADER", header).replace("TRIPS", trips)


def test_an_all_reduce_moves_forward() -> None:
    (found,) = violations("HLL103", loop(FORWARD))
    assert found.message.startswith(
        "an all-reduce can run beside another trip of %w: %r, 6 runs"
    )  # fmt: skip
    assert found.help == (
        "collective-pipeliner says: pipelined forward, level 0: a trip later in %w."
    )
    assert [each.instruction for each in found.related] == ["w"]


def test_a_reduce_scatter_moves_forward() -> None:
    scatter = f"s = f32[1,2] reduce-scatter(y), {GROUPS}, dimensions={{1}}, to_apply=sum"
    text = loop(f"{scatter}\n  r = f32[1,4] concatenate(s, s), dimensions={{1}}")
    (found,) = violations("HLL103", text)
    assert "a reduce-scatter can run" in found.message


def gathering() -> str:
    gather = f"g = f32[1,8] all-gather(x), {GROUPS}, dimensions={{1}}"
    return loop(f"{gather}\n  r = f32[1,4] slice(g), slice={{[0:1], [0:4]}}")


def test_an_all_gather_moves_backward() -> None:
    (found,) = violations("HLL103", gathering())
    assert found.location.instruction == "g"
    assert found.help == "collective-pipeliner says: pipelined backward: a trip earlier in %w."


@pytest.mark.parametrize(
    "collective",
    [
        f"{FORWARD}, {PIPELINED}",
        "r = f32[1,4] all-reduce(y), replica_groups={{0},{1}}, to_apply=sum",
        "r = f32[1,4] collective-permute(y), source_target_pairs={{0,1}}",
        "r = f32[1,4] copy(y)",
    ],
)
def test_what_is_pipelined_or_is_no_such_collective_stays(collective: str) -> None:
    assert not found_names("HLL103", loop(collective))


def test_a_wrapped_collective_is_marked_at_its_start() -> None:
    scattered = f"reduce-scatter(a), {GROUPS}, dimensions={{1}}, to_apply=sum"
    wrapped = (
        f"wrapped {{\n  a = f32[1,8] parameter(0)\n  ROOT g = f32[1,4] {scattered}\n}}\n\nbody {{"
    )
    pair = """z = f32[1,8] concatenate(y, y), dimensions={1}
  s = ((f32[1,8]), f32[1,4]) async-start(z), calls=wrapped
  r = f32[1,4] async-done(s)"""
    text = loop(pair, header="is_scheduled=true, ").replace("body {", wrapped, 1)
    assert found_names("HLL103", text, target=None) == ["s"]
    marked = text.replace("calls=wrapped", f"calls=wrapped, {PIPELINED}")
    assert not found_names("HLL103", marked, target=None)


def test_what_the_pass_does_not_move_stays() -> None:
    assert not found_names("HLL103", loop(FORWARD, trips="1"))
    text = loop(FORWARD).replace("dynamic-slice(in, i", "dynamic-slice(out, i")
    assert not found_names("HLL103", text)


def test_a_collective_outside_of_loops_stays() -> None:
    text = loop("r = f32[1,4] copy(y)").replace(
        "ROOT last = ", f"g = f32[6,4] all-reduce(in.1), {GROUPS}, to_apply=sum\n  ROOT last = "
    )
    assert not found_names("HLL103", text)


def test_a_pair_is_found_by_its_start() -> None:
    pair = f"s = f32[1,4] all-reduce-start(y), {GROUPS}, to_apply=sum\n"
    text = loop(pair + "  r = f32[1,4] all-reduce-done(s)", "is_scheduled=true, ")
    (found,) = violations("HLL103", text)
    assert found.location.instruction == "s"
    assert found.impact.seconds > 0


LARGE = """large {
  v.9 = s32[] parameter(0)
  ROOT b.9 = s32[268435456] broadcast(v.9), dimensions={}
}

body {"""


def test_one_that_is_hidden_stays() -> None:
    start = f"s = f32[1,4] all-reduce-start(y), {GROUPS}, to_apply=sum"
    work = "k = s32[268435456] fusion(i), kind=kLoop, calls=large"
    text = loop(f"{start}\n  {work}\n  r = f32[1,4] all-reduce-done(s)", "is_scheduled=true, ")
    text = text.replace("body {", LARGE, 1)
    assert not found_names("HLL103", text)
    assert found_names("HLL103", text, target=None) == ["s"]


def test_the_time_is_the_most_that_pipelining_gains() -> None:
    text = loop(FORWARD, "is_scheduled=true, ")
    (found,) = violations("HLL103", text)
    before, after = _makespan(text), _makespan(text, pipeline=True)
    assert found.impact.seconds >= before - after
    assert found.impact.seconds > 0


def _makespan(text: str, *, pipeline: bool = False) -> float:
    module = parse_module(text)
    if pipeline:
        assert CollectivePipeliner().run(module, PassContext())
    schedule = Subject("m.hlo", module, CostModelChoice(target="h100_sxm")).schedule
    return schedule.simulation.makespan * (schedule.unit.seconds or 0.0)


@pytest.mark.parametrize("text", [loop(FORWARD), gathering()])
def test_what_the_pass_has_moved_is_not_found_again(text: str) -> None:
    module = parse_module(text)
    for direction in ("forward", "backward"):
        options = CollectivePipeliner.Options(pipelining_direction=direction)
        CollectivePipeliner(options).run(module, PassContext())
    assert not found_names("HLL103", print_module(module))


def test_a_module_that_is_not_partitioned_has_no_verdict() -> None:
    text = loop(FORWARD).replace(
        "zero.1 =",
        'k = f32[6,4] custom-call(in.1), custom_call_target="Sharding", '
        "sharding={devices=[2,1]<=[2]}\n  zero.1 =",
    )
    assert "not partitioned" in check("HLL103", text).reason
