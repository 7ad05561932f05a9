"""Overlap limits: what needs more than there is, and which limit to raise."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from tests.scheduling.programs import GATHER, names, schedule, scheduled

from hloopt.diagnostics import PassRefused, PipelineError


def test_contradicting_limits_are_one_message() -> None:
    with pytest.raises(PipelineError, match="all_gather_overlap_limit is 2, more than"):
        schedule(scheduled(GATHER), preset="xla-gpu", all_gather_overlap_limit=2)


def test_what_never_fits_is_an_error() -> None:
    with pytest.raises(PassRefused, match=r"d: Skipped due to kExceedsOverlapLimit"):
        schedule(scheduled(GATHER), all_gather_overlap_limit=0)


def test_the_way_out_names_the_limit_to_raise_and_how_far() -> None:
    """Two all-reduces have to overlap. Top down nothing limits them in the body, as in XLA, but
    the loop needs as much as they do."""
    body = """
sum { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] add(x, y) }

body {
  state = (s32[], f32[4], f32[4]) parameter(0)
  i = s32[] get-tuple-element(state), index=0
  a = f32[4] get-tuple-element(state), index=1
  b = f32[4] get-tuple-element(state), index=2
  a-start = f32[4] all-reduce-start(a), replica_groups={}, to_apply=sum
  b-start = f32[4] all-reduce-start(b), replica_groups={}, to_apply=sum
  a-done = f32[4] all-reduce-done(a-start), control-predecessors={b-start}
  b-done = f32[4] all-reduce-done(b-start)
  one = s32[] constant(1)
  next = s32[] add(i, one)
  ROOT after = (s32[], f32[4], f32[4]) tuple(next, a-done, b-done)
}

condition {
  state.1 = (s32[], f32[4], f32[4]) parameter(0)
  i.1 = s32[] get-tuple-element(state.1), index=0
  limit = s32[] constant(3)
  ROOT goes-on = pred[] compare(i.1, limit), direction=LT
}
"""
    entry = """
  zero = s32[] constant(0)
  p = f32[4] parameter(0)
  s = (f32[4], f32[4]) all-gather-start(p), replica_groups={}, dimensions={0}
  d = f32[4] all-gather-done(s)
  init = (s32[], f32[4], f32[4]) tuple(zero, p, d)
  ROOT loop = (s32[], f32[4], f32[4]) while(init), condition=condition, body=body
"""
    for top_down, blocked in ((True, "loop"), (False, "a-done")):
        attempt = partial(schedule, scheduled(entry, body), top_down_scheduling=top_down)
        with pytest.raises(PassRefused, match=f"{blocked}: Skipped due to") as caught:
            attempt()
        assert caught.value.help == (
            f"%{blocked} needs 1 more of kAllReduce than is left of 1: "
            "give the pass all_reduce_overlap_limit=2"
        )
        attempt(all_reduce_overlap_limit=2)


def test_a_group_that_never_fits_is_an_error() -> None:
    note = ', frontend_attributes={_scheduling_group_id="4"}'
    body = GATHER.replace("dimensions={0}", "dimensions={0}" + note)
    body = body.replace("all-gather-done(s)", "all-gather-done(s)" + note)
    with pytest.raises(PassRefused, match=r"Annotation id: 4\. It needs 1 kAllGather resources"):
        schedule(scheduled(body), all_gather_overlap_limit=0)


def beside_a_loop(rest: str) -> str:
    """A permutation `s.1`, `d.1` beside the loop `w`, whose body starts one and does the `rest`."""
    permute = "collective-permute-start({}), source_target_pairs={{{{0,1}}}}".format
    return scheduled(
        f"""
  p = f32[8] parameter(0)
  b = pred[] parameter(1)
  t = (f32[8], pred[]) tuple(p, b)
  w = (f32[8], pred[]) while(t), condition=cond, body=body
  s.1 = (f32[8], f32[8]) {permute("p")}
  d.1 = f32[8] collective-permute-done(s.1)
  g = f32[8] get-tuple-element(w), index=0
  ROOT r = f32[8] add(g, d.1)""",
        f"""
f {{
  x.1 = f32[8] parameter(0)
  s.2 = (f32[8], f32[8]) {permute("x.1")}
  ROOT d.2 = f32[8] collective-permute-done(s.2)
}}
cond {{ c = (f32[8], pred[]) parameter(0) ROOT g = pred[] get-tuple-element(c), index=1 }}
body {{
  c = (f32[8], pred[]) parameter(0)
  x = f32[8] get-tuple-element(c), index=0
  b = pred[] get-tuple-element(c), index=1
  s = (f32[8], f32[8]) {permute("x")}
  {rest}
  both = f32[8] add(d, called)
  ROOT t = (f32[8], pred[]) tuple(both, b)
}}""",
    )


def is_over_the_loop(text: str, **options: Any) -> bool:
    found = names(schedule(text, **options))
    return found.index("s.1") < found.index("w") < found.index("d.1")


def test_a_loop_needs_what_its_body_uses() -> None:
    text = beside_a_loop("d = f32[8] collective-permute-done(s)\ncalled = f32[8] negate(x)")
    assert not is_over_the_loop(text)
    assert is_over_the_loop(text, collective_permute_overlap_limit=2)


@pytest.mark.parametrize(
    ("rest", "needed"),
    [
        (
            "called = f32[8] call(x), to_apply=f, control-predecessors={s}\n"
            "d = f32[8] collective-permute-done(s), control-predecessors={called}",
            2,
        ),
        (
            "d = f32[8] collective-permute-done(s)\n"
            "called = f32[8] call(x), to_apply=f, control-predecessors={d}",
            1,
        ),
        (
            "d = f32[8] collective-permute-done(s)\n"
            "s.3 = (f32[8], f32[8]) collective-permute-start(d), source_target_pairs={{0,1}}\n"
            "called = f32[8] collective-permute-done(s.3)",
            1,
        ),
        (
            "s.3 = (f32[8], f32[8]) collective-permute-start(x), source_target_pairs={{0,1}}\n"
            "d = f32[8] collective-permute-done(s), control-predecessors={s.3}\n"
            "called = f32[8] collective-permute-done(s.3), control-predecessors={s}",
            2,
        ),
    ],
)
def test_a_loop_needs_what_is_in_flight_at_the_same_time(rest: str, needed: int) -> None:
    """Around a call in its body, what is in flight there and what the call uses."""
    text = beside_a_loop(rest)
    assert not is_over_the_loop(text, collective_permute_overlap_limit=needed)
    assert is_over_the_loop(text, collective_permute_overlap_limit=needed + 1)
