"""Times of a run over the link to the host, of which XLA's models know nothing."""

from __future__ import annotations

import pytest

from hloopt.analysis.latency import LatencyModel, Origin, Time
from hloopt.analysis.latency.profile import Profile, ProfileModel
from hloopt.analysis.latency.run_times import RunTimes
from hloopt.analysis.latency.speed_of_light import SpeedOfLightModel
from hloopt.ir import Instruction
from hloopt.targets import load_target
from hloopt.text import parse_module

H100 = load_target("h100_sxm")
HOST_RATE = 64e9
"""Bytes per second over PCIe, one way."""
ROW = 4 * 4096 * 4096
"""The bytes of a row of the stacks below."""

TEXT = """HloModule m, is_scheduled=true

take {
  stack = f32[8,4096,4096]{2,1,0:S(SPACE)} parameter(0)
  i = s32[] parameter(1)
  zero = s32[] constant(0)
  ROOT slice = f32[1,4096,4096]{2,1,0} dynamic-slice(stack, i, zero, zero),
    dynamic_slice_sizes={1,4096,4096}
}

put {
  stack = f32[8,4096,4096]{2,1,0:S(SPACE)} parameter(0)
  row = f32[1,4096,4096]{2,1,0} parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  ROOT update = f32[8,4096,4096]{2,1,0:S(SPACE)} dynamic-update-slice(stack, row, i, zero, zero)
}

async_take {
  stack = f32[8,4096,4096]{2,1,0:S(SPACE)} parameter(0)
  i = s32[] parameter(1)
  ROOT taken = f32[1,4096,4096]{2,1,0} fusion(stack, i), kind=kLoop, calls=take
}

async_put {
  stack = f32[8,4096,4096]{2,1,0:S(SPACE)} parameter(0)
  row = f32[1,4096,4096]{2,1,0} parameter(1)
  i = s32[] parameter(2)
  ROOT put = f32[8,4096,4096]{2,1,0:S(SPACE)} fusion(stack, row, i), kind=kLoop, calls=put
}

ENTRY e {
  stack = f32[8,4096,4096]{2,1,0:S(SPACE)} parameter(0)
  i = s32[] parameter(1)
  held = (f32[8,4096,4096]{2,1,0:S(SPACE)}, s32[]) tuple(stack, i)
  taken = f32[1,4096,4096]{2,1,0} fusion(stack, i), kind=kLoop, calls=take
  take.s = ((f32[8,4096,4096]{2,1,0:S(SPACE)}, s32[]), f32[1,4096,4096]{2,1,0}, u32[])
    async-start(stack, i), calls=async_take
  take.d = f32[1,4096,4096]{2,1,0} async-done(take.s)
  put.s = ((f32[8,4096,4096]{2,1,0:S(SPACE)}, f32[1,4096,4096]{2,1,0}, s32[]),
    f32[8,4096,4096]{2,1,0:S(SPACE)}, u32[]) async-start(stack, take.d, i), calls=async_put
  put.d = f32[8,4096,4096]{2,1,0:S(SPACE)} async-done(put.s)
  ROOT all = (f32[8,4096,4096]{2,1,0:S(SPACE)}, f32[1,4096,4096]{2,1,0}) tuple(put.d, taken)
}
"""


def timed(space: int, model: LatencyModel | None = None) -> tuple[RunTimes, dict[str, Instruction]]:
    """The times of the program with its stack in a memory space, and instructions by name."""
    module = parse_module(TEXT.replace("SPACE", str(space)))
    times = RunTimes(model or SpeedOfLightModel(H100), module)
    return times, {instruction.name: instruction for instruction in module.instructions()}


@pytest.mark.parametrize("name", ["take", "put"])
def test_a_slice_takes_as_long_as_the_link_needs_for_its_bytes(name: str) -> None:
    times, named = timed(5)
    start, done = named[f"{name}.s"], named[f"{name}.d"]
    time = times.edge_time(start, done)
    assert time.origin is Origin.LINK
    assert time.cycles == pytest.approx(ROW / HOST_RATE * 1e6, rel=1e-3)
    assert times.whole_time(start) == time
    near, same = timed(0)
    assert near.edge_time(same[f"{name}.s"], same[f"{name}.d"]).cycles < time.cycles / 10


def test_a_kernel_that_reads_the_memory_of_the_host_waits_for_it() -> None:
    times, named = timed(5)
    time = times.node_time(named["taken"])
    assert time.origin is Origin.LINK
    assert time.cycles == pytest.approx(ROW / HOST_RATE * 1e6, rel=1e-3)
    near, same = timed(0)
    assert near.node_time(same["taken"]).origin is not Origin.LINK


def test_what_moves_nothing_takes_no_time() -> None:
    times, named = timed(5)
    for name in ("held", "all", "stack"):
        assert times.node_time(named[name]) == SpeedOfLightModel(H100).node_time(named[name])


def test_a_measured_time_stays() -> None:
    model = ProfileModel(Profile({"taken": 7.0}), SpeedOfLightModel(H100))
    times, named = timed(5, model)
    assert times.node_time(named["taken"]) == Time(7.0, Origin.PROFILE)
