"""Times of a run: no constant of XLA's among microseconds, and the same however it is scheduled."""

from __future__ import annotations

import pytest

from hloopt.analysis.latency import (
    CostTable,
    FixedModel,
    GpuFixedModel,
    LatencyModel,
    Origin,
    TableModel,
    Time,
)
from hloopt.analysis.latency.profile import Profile, ProfileModel
from hloopt.analysis.latency.run_times import RunTimes
from hloopt.analysis.latency.speed_of_light import SpeedOfLightModel
from hloopt.ir import Instruction, Module
from hloopt.targets import load_target
from hloopt.text import parse_module

H100 = load_target("h100_sxm")
HOST_RATE = 64e9
"""Bytes per second over PCIe, one way."""
SYNC = 'backend_config={"collective_backend_config":{"is_sync":true}}'


def module_of(entry: str, callees: str = "", header: str = ", num_partitions=8") -> Module:
    return parse_module(
        f"""HloModule m{header}
add {{ x = f32[] parameter(0) y = f32[] parameter(1) ROOT z = f32[] add(x, y) }}
{callees}
ENTRY e {{ {entry} }}
"""
    )


def timed(
    entry: str, callees: str = "", *, model: LatencyModel | None = None, devices: int = 8
) -> tuple[RunTimes, dict[str, Instruction]]:
    """The times of a module's run, on an H100 if no model is given, and instructions by name."""
    module = module_of(entry, callees, f", num_partitions={devices}")
    times = RunTimes(model or SpeedOfLightModel(H100), module)
    return times, {i.name: i for i in module.instructions()}


# -- synchronous or not ----------------------------------------------------------------------------

GROUPS = "channel_id=1, replica_groups={{0,1,2,3,4,5,6,7}}"
COLLECTIVES = {
    "all-to-all": f"f32[64,64] all-to-all(#), {GROUPS}, dimensions={{0}}",
    "all-gather": f"f32[512,64] all-gather(#), {GROUPS}, dimensions={{0}}",
    "all-reduce": f"f32[64,64] all-reduce(#), {GROUPS}, to_apply=add",
    "reduce-scatter": f"f32[8,64] reduce-scatter(#), {GROUPS}, dimensions={{0}}, to_apply=add",
    "collective-permute": "f32[64,64] collective-permute(#), channel_id=1, "
    "source_target_pairs={{0,1},{1,2}}",
    "collective-broadcast": f"f32[64,64] collective-broadcast(#), {GROUPS}",
    "uneven": "f32[64,64] all-reduce(#), channel_id=1, replica_groups={{0,1,2},{3,4,5,6,7}}, "
    "to_apply=add",
    "to itself": "f32[64,64] collective-permute(#), channel_id=1, source_target_pairs={}",
}
OWN = {
    "all-gather": f"s = (f32[64,64], f32[512,64]) all-gather-start(p), {GROUPS}, "
    "dimensions={0}# d = f32[512,64] all-gather-done(s)",
    "all-reduce": f"s = f32[64,64] all-reduce-start(p), {GROUPS}, to_apply=add# "
    "d = f32[64,64] all-reduce-done(s)",
    "collective-permute": "s = (f32[64,64], f32[64,64]) collective-permute-start(p), "
    "channel_id=1, source_target_pairs={{0,1},{1,2}}# d = f32[64,64] collective-permute-done(s)",
}


def forms(kind: str) -> list[tuple[str, str]]:
    """Entries in which `s` is or begins a collective, with their callees."""
    collective = COLLECTIVES[kind]
    shape = collective.split()[0]
    wrapped = f"wrapped {{ q = f32[64,64] parameter(0) ROOT c = {collective.replace('#', 'q')} }}"
    as_tuple = (
        f"wrapped {{ q = f32[64,64] parameter(0) c = {collective.replace('#', 'q')} "
        f"ROOT t = ({shape}) tuple(c) }}"
    )
    nested = (
        f"inner {{ q = f32[64,64] parameter(0) ROOT c = {collective.replace('#', 'q')} }}\n"
        f"wrapped {{ q = f32[64,64] parameter(0) ROOT k = {shape} call(q), to_apply=inner }}"
    )
    split = f"s = ((f32[64,64]), {shape}) async-start(p), calls=wrapped# d = {shape} async-done(s)"
    split_tuple = (
        f"s = ((f32[64,64]), ({shape})) async-start(p), calls=wrapped# d = ({shape}) async-done(s)"
    )
    spellings = [(f"s = {collective.replace('#', 'p')}", "")]
    for entry, callees in ((split, wrapped), (split_tuple, as_tuple), (split, nested)):
        spellings += [(entry.replace("#", ""), callees), (entry.replace("#", f", {SYNC}"), callees)]
    if kind in OWN:
        spellings += [(OWN[kind].replace("#", ""), ""), (OWN[kind].replace("#", f", {SYNC}"), "")]
    return [(f"p = f32[64,64] parameter(0) {entry}", callees) for entry, callees in spellings]


@pytest.mark.parametrize("kind", COLLECTIVES)
def test_a_collective_takes_the_same_time_synchronous_or_not(kind: str) -> None:
    found: set[Time] = set()
    for entry, callees in forms(kind):
        times, named = timed(entry, callees)
        found.add(times.whole_time(named["s"]))
        if "d" in named:
            found.add(times.edge_time(named["s"], named["d"]))
            steps = [times.node_time(named[name]).cycles for name in ("s", "d")]
            assert max(steps) <= 1
    (time,) = found
    assert 1 < time.cycles < 150
    known = ("all-to-all", "all-gather", "all-reduce", "reduce-scatter", "collective-permute")
    assert time.origin is (Origin.COLLECTIVE_TABLE if kind in known else Origin.GUESS)


@pytest.mark.parametrize("model", [FixedModel(), GpuFixedModel()], ids=["generic", "gpu"])
@pytest.mark.parametrize("kind", OWN)
def test_abstract_cycles_are_left_as_they_are(kind: str, model: LatencyModel) -> None:
    for entry, callees in forms(kind):
        times, named = timed(entry, callees, model=model)
        assert times.is_abstract
        for instruction in named.values():
            assert times.node_time(instruction) == model.node_time(instruction)
        if "d" in named:
            split = times.edge_time(named["s"], named["d"])
            assert split == model.edge_time(named["s"], named["d"])


def test_costly_kinds_of_the_fixed_model_are_costly_synchronous_too() -> None:
    model = GpuFixedModel(approx_costly_collectives=True)
    large = "f32[9000000]"
    entry = f"""p = {large} parameter(0)
      s = {large} all-reduce-start(p), {GROUPS}, to_apply=add d = {large} all-reduce-done(s)
      r = {large} all-reduce(p), {GROUPS}, to_apply=add
      c = {large} collective-permute(p), source_target_pairs={{{{0,1}}}},
        frontend_attributes={{_xla_gpu_collective_stream="p2p"}}
      b = ({large}, {large}) collective-permute-start(p), source_target_pairs={{{{0,1}}}},
        frontend_attributes={{_xla_gpu_collective_stream="p2p"}}
      f = {large} collective-permute-done(b)"""
    times, named = timed(entry, model=model)
    assert times.whole_time(named["r"]) == times.edge_time(named["s"], named["d"])
    assert times.whole_time(named["r"]).cycles == 4 * 5000
    assert times.whole_time(named["c"]) == times.edge_time(named["b"], named["f"])
    assert times.whole_time(named["c"]).cycles > 5000


# -- what no model knows ---------------------------------------------------------------------------


def copy(size: int, space: int) -> str:
    """A copy to a memory space: 5 is the host's."""
    there = f"f32[{size}]{{0:S({space})}}" if space else f"f32[{size}]"
    return (
        f"p = f32[{size}] parameter(0) s = ({there}, f32[{size}], u32[]) copy-start(p) "
        f"d = {there} copy-done(s)"
    )


@pytest.mark.parametrize("size", [1 << 14, 1 << 24])
def test_copies_take_what_their_bytes_take(size: int) -> None:
    times, named = timed(copy(size, 0))
    within = times.edge_time(named["s"], named["d"])
    assert within.cycles == pytest.approx(2 * 4 * size / H100.memory_bandwidth * 1e6)
    times, named = timed(copy(size, 5))
    to_host = times.edge_time(named["s"], named["d"])
    assert to_host.cycles == pytest.approx(4 * size / HOST_RATE * 1e6)
    assert within.origin is to_host.origin is Origin.GUESS


TRANSFER = """
  p = f32[16384] parameter(0) t = token[] after-all()
  s = (f32[16384], u32[], token[]) send(p, t), channel_id=1 #
  d = token[] send-done(s), channel_id=1 %
  r = (f32[16384], u32[], token[]) recv(t), channel_id=1 #
  e = (f32[16384], token[]) recv-done(r), channel_id=1 %
"""


@pytest.mark.parametrize(
    ("attribute", "to_done", "devices", "expected"),
    [
        ("", "", 8, 45 + 65536 / 360e9 * 1e6),  # over NVLink
        ("", "", 16, 45 + 65536 / 25.002e9 * 1e6),  # of 16 devices not all are in one node
        (
            ', frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"}',
            "",
            16,
            45 + 65536 / 360e9 * 1e6,
        ),
        (
            ', frontend_attributes={_xla_send_recv_source_target_pairs="{{0,1},{7,8}}"}',
            "",
            16,
            45 + 65536 / 25.002e9 * 1e6,
        ),
        (", is_host_transfer=true", ", is_host_transfer=true", 8, 65536 / HOST_RATE * 1e6),
    ],
)
def test_transfers_take_what_the_link_takes(
    attribute: str, to_done: str, devices: int, expected: float
) -> None:
    text = TRANSFER.replace("#", attribute).replace("%", to_done)
    times, named = timed(text, devices=devices)
    for start, done in (("s", "d"), ("r", "e")):
        time = times.edge_time(named[start], named[done])
        assert time == times.whole_time(named[start])
        assert time.origin is Origin.GUESS
        assert time.cycles == pytest.approx(expected)


def test_unknown_collectives_go_around_a_ring_and_all_reduces_twice() -> None:
    once = 64 * 64 * 4 / 360e9 * 1e6
    devices = 5 * 8  # five replicas, each with all partitions
    rounds = {
        "to itself": 1,
        "collective-broadcast": 7 / 8,
        "uneven": 2 * (devices - 1) / devices,
    }
    for kind, share in rounds.items():
        times, named = timed(*forms(kind)[0])
        assert times.whole_time(named["s"]).cycles == pytest.approx(45 + share * once)


WORK = """
negation { n = f32[1048576] parameter(0) ROOT m = f32[1048576] negate(n) }
body { v = (s32[], f32[1048576]) parameter(0) i = s32[] get-tuple-element(v), index=0
  one = s32[] constant(1) j = s32[] add(i, one) w = f32[1048576] get-tuple-element(v), index=1
  l = f32[1048576] fusion(w), kind=kLoop, calls=negation
  ROOT u = (s32[], f32[1048576]) tuple(j, l) }
condition { a = (s32[], f32[1048576]) parameter(0) k = s32[] get-tuple-element(a), index=0
  last = s32[] constant(3) ROOT less = pred[] compare(k, last), direction=LT }
called { q = f32[1048576] parameter(0) zero = s32[] constant(0)
  b = (s32[], f32[1048576]) tuple(zero, q)
  loop = (s32[], f32[1048576]) while(b), condition=condition, body=body
  ROOT h = f32[1048576] get-tuple-element(loop), index=1 }
alone { q = f32[1048576] parameter(0)
  ROOT l = f32[1048576] fusion(q), kind=kLoop, calls=negation }
"""


def calling(callee: str, thread: str = "") -> str:
    return (
        "p = f32[1048576] parameter(0) s = ((f32[1048576]), f32[1048576]) async-start(p), "
        f"{thread}calls={callee} d = f32[1048576] async-done(s)"
    )


def test_calls_beside_the_main_stream_take_what_they_call_takes() -> None:
    times, named = timed(calling("alone"), WORK)
    once = times.edge_time(named["s"], named["d"])
    assert once == times.node_time(named["l"])
    assert once.origin is Origin.ROOFLINE
    times, named = timed(calling("called"), WORK)
    thrice = times.whole_time(named["s"])
    assert 3 * once.cycles < thrice.cycles < 3 * once.cycles + 0.1  # counters beside the fusion
    assert thrice.origin is Origin.GUESS


def test_what_moves_many_bytes_takes_longer_than_a_constant() -> None:
    times, named = timed("p = f32[268435456] parameter(0) c = f32[268435456] copy(p)")
    assert times.model.node_time(named["c"]) == Time(0.01, Origin.GUESS)
    expected = Time(2 * 4 * (1 << 28) / H100.memory_bandwidth * 1e6, Origin.GUESS)
    assert times.node_time(named["c"]) == pytest.approx(expected)
    times, named = timed("p = f32[4] parameter(0) c = f32[4] copy(p) t = token[] after-all()")
    assert times.node_time(named["c"]) == Time(0.01, Origin.GUESS)
    assert times.node_time(named["t"]).origin is Origin.FREE


def test_annotations_take_no_time_and_known_calls_what_they_move() -> None:
    entry = """p = f32[1048576] parameter(0)
      a = f32[1048576] custom-call(p), custom_call_target="Sharding", sharding={replicated}
      m = f32[1048576] custom-call(p), custom_call_target="MoveToDevice"
      o = f32[1048576] custom-call(p), custom_call_target="ours"
      """
    times, named = timed(entry)
    assert times.node_time(named["a"]).origin is Origin.FREE
    moved = 2 * 4 * (1 << 20) / H100.memory_bandwidth * 1e6
    assert times.node_time(named["m"]) == pytest.approx(Time(moved, Origin.GUESS))
    assert times.node_time(named["o"]) == Time(10, Origin.GUESS)
    times, named = timed(entry, model=TableModel(CostTable({}, {}), GpuFixedModel()))
    assert times.node_time(named["a"]).origin is Origin.FREE
    assert times.node_time(named["o"]).origin is Origin.UNKNOWN


def test_what_is_fed_from_the_host_comes_over_its_link() -> None:
    entry = """t = token[] after-all()
      i = (f32[1048576], token[]) infeed(t) h = f32[1048576]{0:S(5)} parameter(0)
      c = f32[1048576] copy(h)"""
    times, named = timed(entry)
    link = 4 * (1 << 20) / HOST_RATE * 1e6
    assert times.node_time(named["c"]).cycles == pytest.approx(link)
    assert times.node_time(named["i"]).cycles == pytest.approx(link, rel=0.01)


# -- who says so -----------------------------------------------------------------------------------

STATED = 'frontend_attributes={latency_metadata="7000"}'


def test_a_stated_latency_is_that_of_the_operation_not_of_its_start_as_well() -> None:
    start = OWN["all-reduce"].replace("#", f", {STATED}")
    times, named = timed(f"p = f32[64,64] parameter(0) {start}")
    assert times.model.node_time(named["s"]) == Time(7, Origin.STATED)  # as XLA takes it
    assert times.edge_time(named["s"], named["d"]) == Time(7, Origin.STATED)
    assert times.node_time(named["s"]) == Time(1, Origin.CONSTANT)


def test_measured_times_come_before_all_others() -> None:
    entry = f"p = f32[64,64] parameter(0) {OWN['all-reduce'].replace('#', f', {STATED}')}"
    table = TableModel(CostTable({"s": 2}, {"s": 33}), SpeedOfLightModel(H100))
    times, named = timed(entry, model=table)
    assert times.edge_time(named["s"], named["d"]) == Time(33, Origin.TABLE)
    assert times.whole_time(named["s"]) == Time(33, Origin.TABLE)
    assert times.node_time(named["s"]) == Time(2, Origin.TABLE)
    profile = ProfileModel(Profile(latencies={"s": {"d": 44}}), SpeedOfLightModel(H100))
    times, named = timed(entry, model=profile)
    assert times.whole_time(named["s"]) == Time(44, Origin.PROFILE)
    copied = ProfileModel(Profile(costs={"s": 55}), SpeedOfLightModel(H100))
    times, named = timed(copy(64, 0), model=copied)
    assert times.edge_time(named["s"], named["d"]) == Time(55, Origin.PROFILE)
    assert times.node_time(named["s"]) == Time(1, Origin.CONSTANT)  # not once more


@pytest.mark.parametrize(
    "model",
    [TableModel(CostTable({}, {}), GpuFixedModel()), ProfileModel(Profile(), FixedModel())],
    ids=["table", "profile"],
)
def test_without_a_target_nothing_stands_in_for_what_a_file_does_not_name(
    model: LatencyModel,
) -> None:
    unknown = Time(0, Origin.UNKNOWN)
    for kind in COLLECTIVES:
        for entry, callees in forms(kind):
            times, named = timed(entry, callees, model=model)
            assert times.whole_time(named["s"]) == unknown
    times, named = timed(copy(1 << 20, 5) + " n = f32[1048576] negate(p)", model=model)
    assert times.edge_time(named["s"], named["d"]) == unknown
    assert times.node_time(named["n"]) == unknown
    assert times.node_time(named["p"]).origin is Origin.FREE
    times, named = timed(calling("called"), WORK, model=model)
    assert times.whole_time(named["s"]) == unknown
