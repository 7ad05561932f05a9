"""Edges between the steps of operations: only those of one kind are as long as an operation."""

from __future__ import annotations

import pytest

from hloopt.analysis.async_operations import is_pair
from hloopt.analysis.latency import GpuFixedModel, Origin
from hloopt.analysis.latency.speed_of_light import SpeedOfLightModel
from hloopt.ir import Instruction
from hloopt.targets import load_target
from hloopt.text import parse_module

GROUPS = "replica_groups={{0,1}}, use_global_device_ids=true"
SYNC = 'backend_config={"collective_backend_config":{"is_sync":true}}'
SHARE = "((f32[32]), f32[16])"
TEXT = f"""
HloModule m, num_partitions=2
add {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
scatter {{ d = f32[32] parameter(0)
  ROOT e = f32[16] reduce-scatter(d), channel_id=1, {GROUPS}, dimensions={{0}}, to_apply=add }}
scatter.2 {{ d.2 = f32[32] parameter(0)
  ROOT e.2 = f32[16] reduce-scatter(d.2), channel_id=6, {GROUPS}, dimensions={{0}}, to_apply=add }}
gather {{ f = f32[16] parameter(0)
  ROOT g = f32[32] all-gather(f), channel_id=2, {GROUPS}, dimensions={{0}} }}
ENTRY main {{
  p = f32[32] parameter(0)
  q = f32[16] parameter(1)
  t = token[] after-all()
  ag = (f32[16], f32[32]) all-gather-start(q), channel_id=3, {GROUPS}, dimensions={{0}}
  ag-done = f32[32] all-gather-done(ag)
  wag = ((f32[16]), f32[32]) async-start(q), calls=gather
  wag-done = f32[32] async-done(wag)
  cp = (f32[32], f32[32]) collective-permute-start(p), source_target_pairs={{{{0,1}}}}, {SYNC}
  cp-done = f32[32] collective-permute-done(cp)
  rs = {SHARE} async-start(p), calls=scatter
  rs-done = f32[16] async-done(rs)
  sync-rs = {SHARE} async-start(p), calls=scatter.2, {SYNC}
  sync-rs-done = f32[16] async-done(sync-rs)
  copy = (f32[32], f32[32], u32[]) copy-start(p)
  copy-done = f32[32] copy-done(copy)
  send = (f32[32], u32[], token[]) send(p, t), channel_id=4
  send-done = token[] send-done(send), channel_id=4
  recv = (f32[32], u32[], token[]) recv(t), channel_id=5
  recv-done = (f32[32], token[]) recv-done(recv), channel_id=5
  ROOT n = f32[32] negate(ag-done)
}}
"""


@pytest.fixture(scope="module")
def named() -> dict[str, Instruction]:
    return {i.name: i for i in parse_module(TEXT).entry.instructions}


@pytest.mark.parametrize(
    ("start", "done"),
    [
        *(("ag", "ag-done"), ("wag", "ag-done"), ("ag", "wag-done"), ("wag", "wag-done")),
        *(("cp", "cp-done"), ("rs", "sync-rs-done"), ("sync-rs", "rs-done")),
        *(("copy", "copy-done"), ("send", "send-done"), ("recv", "recv-done")),
    ],
)
def test_a_start_and_a_done_of_one_kind_are_a_latency_apart(
    start: str, done: str, named: dict[str, Instruction]
) -> None:
    """Even if they are not asynchronous."""
    assert is_pair(named[start], named[done])
    assert GpuFixedModel().latency(named[start], named[done]) == 5000


@pytest.mark.parametrize(
    ("start", "done"),
    [
        *(("ag", "cp-done"), ("cp", "ag-done"), ("rs", "wag-done"), ("copy", "ag-done")),
        *(("send", "recv-done"), ("recv", "send-done"), ("send", "ag-done"), ("ag", "send-done")),
        *(("ag-done", "ag"), ("send-done", "send"), ("ag", "n"), ("p", "ag"), ("ag", "ag")),
    ],
)
def test_others_are_ordinary_neighbours(
    start: str, done: str, named: dict[str, Instruction]
) -> None:
    assert not is_pair(named[start], named[done])
    assert GpuFixedModel().latency(named[start], named[done]) == 1


def test_speed_of_light_knows_operations_that_are_not_asynchronous(
    named: dict[str, Instruction],
) -> None:
    model = SpeedOfLightModel(load_target("h100_sxm"))
    time = model.edge_time(named["sync-rs"], named["sync-rs-done"])
    assert time.origin is Origin.COLLECTIVE_TABLE
    assert time == model.edge_time(named["rs"], named["rs-done"])
    assert model.latency(named["send"], named["recv-done"]) == 1
    assert model.latency(named["send"], named["send-done"]) == 5000
