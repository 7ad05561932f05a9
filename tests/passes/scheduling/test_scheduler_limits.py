"""Limits of the latency-hiding scheduler: operations in flight, and memory."""

from __future__ import annotations

from functools import partial

import pytest
from tests.passes.scheduling.test_latency_hiding_scheduler import GATHER, names, schedule, scheduled

from hloopt.diagnostics import PassRefused, PipelineError
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.scheduling.latency_hiding_scheduler.config import SchedulerConfig
from hloopt.text import parse_module


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


MEMORY = """
  p = f32[8] parameter(0)
  q = f32[1024] parameter(1)
  w = f32[16] parameter(2)
  s = (f32[8], f32[16]) all-gather-start(p), replica_groups={}, dimensions={0}
  d = f32[16] all-gather-done(s)
  part = f32[16] negate(w)
  large = f32[1024] negate(q)
  small.1 = f32[16] sine(part)
  small.2 = f32[16] slice(large), slice={[0:16]}
  ROOT r = (f32[16], f32[16], f32[16]) tuple(small.1, small.2, d)
"""


def test_above_the_memory_limit_what_adds_least_is_scheduled_first() -> None:
    def comes_last(**options: int) -> bool:
        module = parse_module(scheduled(MEMORY))
        create_pass("latency-hiding-scheduler", options).run(module, PassContext())
        found = names(module)
        return found.index("small.1") < found.index("small.2")

    assert comes_last()
    assert not comes_last(memory_limit=1)


@pytest.mark.parametrize(
    ("limit", "at_limit", "on_the_other_side"),
    [
        (128, "q large small.2 w part small.1 p s d r", "w part small.1 q large small.2 p s d r"),
        (192, "q large small.2 w part small.1 p s d r", "w part small.1 q large small.2 p s d r"),
        (256, "q large small.2 p s d w part small.1 r", "q large small.2 w part small.1 p s d r"),
        (448, "p s q large small.2 w part small.1 d r", "q large small.2 p s w part small.1 d r"),
    ],
)
def test_usage_at_the_memory_limit(limit: int, at_limit: str, on_the_other_side: str) -> None:
    """128 bytes in use are over a limit of 128, and not over half of 256; what makes them 192 or
    256 fits into as many."""
    other = limit + 4 if limit == 128 else limit - 4
    for size, order in ((limit, at_limit), (other, on_the_other_side)):
        module = parse_module(scheduled(MEMORY))
        options = {"memory_limit": size}
        create_pass("latency-hiding-scheduler", options).run(module, PassContext())
        assert " ".join(names(module)) == order


def test_what_frees_memory_goes_last_not_what_changes_nothing() -> None:
    module = parse_module(scheduled(MEMORY))
    create_pass("latency-hiding-scheduler", {"memory_limit": 160}).run(module, PassContext())
    assert " ".join(names(module)) == "w part small.1 q large small.2 p s d r"


def test_reruns_end_when_the_peak_fits() -> None:
    for limit in (1, 4096, 1 << 30):
        schedule(scheduled(MEMORY), memory_limit=limit, rerun=3, estimate_fragmentation_size=True)


def test_a_loop_needs_what_its_body_uses() -> None:
    loop = """
cond { c = (f32[8], pred[]) parameter(0) ROOT g = pred[] get-tuple-element(c), index=1 }
body {
  c = (f32[8], pred[]) parameter(0)
  x = f32[8] get-tuple-element(c), index=0
  b = pred[] get-tuple-element(c), index=1
  s = (f32[8], f32[8]) collective-permute-start(x), source_target_pairs={{0,1}}
  d = f32[8] collective-permute-done(s)
  ROOT t = (f32[8], pred[]) tuple(d, b)
}"""
    text = scheduled(
        """
  p = f32[8] parameter(0)
  b = pred[] parameter(1)
  t = (f32[8], pred[]) tuple(p, b)
  w = (f32[8], pred[]) while(t), condition=cond, body=body
  s.1 = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}}
  d.1 = f32[8] collective-permute-done(s.1)
  g = f32[8] get-tuple-element(w), index=0
  ROOT r = f32[8] add(g, d.1)""",
        loop,
    )
    apart, over = names(schedule(text)), names(schedule(text, collective_permute_overlap_limit=2))
    assert not apart.index("s.1") < apart.index("w") < apart.index("d.1")
    assert over.index("s.1") < over.index("w") < over.index("d.1")


BODY_WITH_CALL = """
f {{
  x.1 = f32[8] parameter(0)
  s.2 = (f32[8], f32[8]) collective-permute-start(x.1), source_target_pairs={{{{0,1}}}}
  ROOT d.2 = f32[8] collective-permute-done(s.2)
}}
cond {{ c = (f32[8], pred[]) parameter(0) ROOT g = pred[] get-tuple-element(c), index=1 }}
body {{
  c = (f32[8], pred[]) parameter(0)
  x = f32[8] get-tuple-element(c), index=0
  b = pred[] get-tuple-element(c), index=1
  s = (f32[8], f32[8]) collective-permute-start(x), source_target_pairs={{{{0,1}}}}
  {rest}
  both = f32[8] add(d, called)
  ROOT t = (f32[8], pred[]) tuple(both, b)
}}"""


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
    text = scheduled(
        """
  p = f32[8] parameter(0)
  b = pred[] parameter(1)
  t = (f32[8], pred[]) tuple(p, b)
  w = (f32[8], pred[]) while(t), condition=cond, body=body
  s.1 = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{0,1}}
  d.1 = f32[8] collective-permute-done(s.1)
  g = f32[8] get-tuple-element(w), index=0
  ROOT r = f32[8] add(g, d.1)""",
        BODY_WITH_CALL.format(rest=rest),
    )
    for limit in (needed, needed + 1):
        found = names(schedule(text, collective_permute_overlap_limit=limit))
        is_over = found.index("s.1") < found.index("w") < found.index("d.1")
        assert is_over == (limit > needed)


def test_the_limit_is_what_arguments_and_results_leave() -> None:
    """As XLA:GPU has it: arrays of 8 bytes, a table of 16, nothing on the host."""
    text = """HloModule m, is_scheduled=true, input_output_alias={ {0}: (0, {}) }
ENTRY e { p = f32[2] parameter(0)
  q = f32[2]{0:S(5)} parameter(1)
  n = f32[2] negate(p)
  ROOT r = (f32[2], f32[2]{0:S(5)}) tuple(n, q) }
"""
    config = SchedulerConfig(preset="xla-gpu", device_memory_size=124)
    assert config.resolved(parse_module(text)).memory_limit == (124 - 8 - 8 - 16 + 8) * 95 // 100
    small = SchedulerConfig(preset="xla-gpu", device_memory_size=20)
    assert small.resolved(parse_module(text)).memory_limit == 0
    with pytest.raises(PipelineError, match="cannot both be given"):
        SchedulerConfig(preset="xla-gpu", device_memory_size=124, memory_limit=5)
