"""Calls that are annotated as collectives, and synchronous collectives, on the stream of XLA:GPU's
collectives. The orders are those of its compiler."""

from __future__ import annotations

import pytest
from tests.scheduling.programs import SUM, names, schedule, scheduled

ANNOTATION = ', frontend_attributes={{_xla_stream_annotation="{}"}}'
CALLEES = """
f { x = f32[64] parameter(0) ROOT y = f32[64] sine(x) }
g { v = f32[64] parameter(0) ROOT w = f32[64] call(v), to_apply=f }
"""
GATHER = "= (f32[64], f32[128]) all-gather-start(q), dimensions={0}, replica_groups="


def program(start: str = "", done: str = "", thread: str = "main") -> str:
    """Two gathers, and between them a call with annotations on `cs` and `cd`."""
    on_start, on_done = (ANNOTATION.format(text) if text else "" for text in (start, done))
    body = f"""
  q = f32[64] parameter(1)
  as {GATHER}{{{{0,1}},{{2,3}}}}
  bs {GATHER}{{{{0,2}},{{1,3}}}}
  p = f32[64] parameter(0)
  cs = ((f32[64]), f32[64]) async-start(p), calls=g, async_execution_thread="{thread}"{on_start}
  bd = f32[128] all-gather-done(bs)
  cd = f32[64] async-done(cs){on_done}
  ad = f32[128] all-gather-done(as)
  ROOT r = (f32[128], f32[64], f32[128]) tuple(ad, cd, bd)
"""
    return scheduled(body, CALLEES)


ALONE = ["p", "cs", "cd", "q", "bs", "bd", "as", "ad", "r"]
BESIDE = ["q", "bs", "p", "cs", "bd", "as", "cd", "ad", "r"]


@pytest.mark.parametrize(
    ("start", "done", "order"),
    [
        ("", "", BESIDE),
        ("1", "1", BESIDE),
        ("collective", "collective", ALONE),
        ("Collective", "COLLECTIVE", ALONE),
        ("", "collective", ALONE),
        ("collective", "", BESIDE),
    ],
)
@pytest.mark.parametrize("streams", [False, True])
def test_a_call_is_a_collective_by_its_own_annotation(
    start: str, done: str, order: list[str], *, streams: bool
) -> None:
    """The start's says nothing of the done: it is the done that has to wait for its turn."""
    module = schedule(
        program(start, done), preset="xla-gpu", enable_collective_multi_streaming=streams
    )
    assert names(module) == order


@pytest.mark.parametrize("streams", [False, True])
def test_annotated_calls_may_meet_any_collective(*, streams: bool) -> None:
    """Nobody knows their devices, so nobody looks for shared ones, whatever comes first."""
    module = schedule(
        program("collective", "collective", thread="other"),
        preset="xla-gpu",
        enable_collective_multi_streaming=streams,
        parallel_collective_overlap_limit=2,
    )
    assert names(module) == ["q", "bs", "p", "cs", "bd", "as", "cd", "ad", "r"]


def test_only_generic_starts_and_dones_become_collectives_by_annotation() -> None:
    annotation = ANNOTATION.format("collective")
    copied = f"""
  q = f32[64] parameter(1)
  as {GATHER}{{{{0,1}},{{2,3}}}}
  p = f32[64] parameter(0)
  cs = (f32[64], f32[64], u32[]) copy-start(p){annotation}
  cd = f32[64] copy-done(cs){annotation}
  ad = f32[128] all-gather-done(as)
  ROOT r = (f32[128], f32[64]) tuple(ad, cd)
"""
    order = names(schedule(scheduled(copied), preset="xla-gpu"))
    assert max(map(order.index, ("as", "cs"))) < min(map(order.index, ("ad", "cd")))


def test_collectives_stay_apart_whatever_their_annotation() -> None:
    groups = "{{0,1},{2,3}}"
    annotation = ANNOTATION.format("collective")
    gathers = f"""
  q = f32[64] parameter(0)
  as {GATHER}{groups}{annotation}
  bs {GATHER}{groups}{annotation}
  bd = f32[128] all-gather-done(bs){annotation}
  ad = f32[128] all-gather-done(as){annotation}
  ROOT r = (f32[128], f32[128]) tuple(ad, bd)
"""
    module = schedule(
        scheduled(gathers),
        preset="xla-gpu",
        enable_collective_multi_streaming=True,
        parallel_collective_overlap_limit=2,
    )
    assert names(module) == ["q", "bs", "bd", "as", "ad", "r"]


SYNC = 'backend_config={"collective_backend_config":{"is_sync":true}}'


@pytest.mark.parametrize("limit", [1, 2])
def test_synchronous_collectives_do_not_keep_others_away(limit: int) -> None:
    """The done `d` has the stream to the last, for XLA notes the release of starts only."""
    reduce = "replica_groups={{0,2},{1,3}}, use_global_device_ids=true, to_apply=sum"
    body = f"""
  q = f32[64] parameter(1)
  p = f32[64] parameter(0)
  x = f32[64] negate(p)
  t = f32[64] all-reduce-start(x), channel_id=1, {reduce}
  u = f32[64] all-reduce-done(t)
  y = f32[64] negate(u)
  v = f32[64] all-reduce-start(y), channel_id=2, {reduce}, {SYNC}
  d = f32[64] all-reduce-done(v)
  z = f32[64] fusion(q), kind=kLoop, calls=k
  ROOT r = (f32[64], f32[64]) tuple(d, z)
"""
    module = schedule(
        scheduled(body, f"{SUM}\nk {{ kx = f32[64] parameter(0) ROOT ky = f32[64] sine(kx) }}"),
        preset="xla-gpu",
        enable_collective_multi_streaming=True,
        parallel_collective_overlap_limit=limit,
    )
    assert names(module) == ["p", "x", "t", "u", "y", "v", "q", "z", "d", "r"]
