"""Limits of the latency-hiding scheduler: operations in flight, and memory."""

from __future__ import annotations

import pytest
from tests.scheduling.programs import names, schedule, scheduled
from tests.scheduling.test_memory_limit import MEMORY

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


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
