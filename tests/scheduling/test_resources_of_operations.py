"""The asynchronous operations, and the resource that each uses."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.ir import Module
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.gpu_tracker import GpuResourceTracker
from hloopt.scheduling.resources.resource import Hazard, Usage
from hloopt.scheduling.resources.tracker import ResourceTracker
from hloopt.text import parse_module

_KINDS = {
    "all-gather": ("f32[16]", "all-gather(x), dimensions={0}"),
    "reduce-scatter": ("f32[4]", "reduce-scatter(x), dimensions={0}, to_apply=sum"),
    "all-to-all": ("f32[8]", "all-to-all(x), dimensions={0}"),
    "collective-broadcast": ("f32[8]", "collective-broadcast(x), replica_groups={{0,1}}"),
    "copy": ("f32[8]", "copy(x)"),
    "negate": ("f32[8]", "negate(x)"),
}
_WRAPPED = "\n".join(
    f"in.{kind} {{ x = f32[8] parameter(0) ROOT o = {shape} {call} }}"
    for kind, (shape, call) in _KINDS.items()
)
_ASYNC = "\n".join(
    f"s.{kind} = ((f32[8]), {shape}) async-start(p), calls=in.{kind}\n"
    f"d.{kind} = {shape} async-done(s.{kind})"
    for kind, (shape, _) in _KINDS.items()
)
_SENT = "(f32[8], u32[], token[])"
_HOST, _SECOND = "is_host_transfer=true", 'frontend_attributes={_xla_send_recv_pipeline="1"}'
_P2P = 'frontend_attributes={_xla_gpu_collective_stream="p2p"}'
_OWN = 'frontend_attributes={_xla_stream_annotation="collective"}'
_GROUP = 'frontend_attributes={_collectives_group="g"}'
_SYNC = 'backend_config={"collective_backend_config":{"is_sync":true}}'
TEXT = f"""HloModule m, is_scheduled=true, replica_count=2
sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }}
{_WRAPPED}
away {{ x = f32[8] parameter(0) ROOT o = f32[8] negate(x) }}, execution_thread="host"
far {{ x = f32[8] parameter(0) ROOT o = f32[8] negate(x) }}, execution_thread="host"
several {{ x = f32[8] parameter(0) y = f32[8] all-reduce(x), to_apply=sum
  ROOT o = f32[8] negate(y) }}
ENTRY e {{
p = f32[8] parameter(0)
k = token[] after-all()
{_ASYNC}
s.thread = ((f32[8]), f32[8]) async-start(p), calls=away, async_execution_thread="host"
d.thread = f32[8] async-done(s.thread)
s.own = ((f32[8]), f32[8]) async-start(p), calls=far, async_execution_thread="host", {_OWN}
d.own = f32[8] async-done(s.own), {_OWN}
s.group = ((f32[8]), f32[8]) async-start(p), calls=several, {_GROUP}
d.group = f32[8] async-done(s.group)
s.gather = (f32[8], f32[16]) all-gather-start(p), dimensions={{0}}
d.gather = f32[16] all-gather-done(s.gather)
s.reduce = f32[8] all-reduce-start(p), to_apply=sum
d.reduce = f32[8] all-reduce-done(s.reduce)
s.permute = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{{{0,1}}}}
d.permute = f32[8] collective-permute-done(s.permute)
s.p2p = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{{{0,1}}}}, {_P2P}
d.p2p = f32[8] collective-permute-done(s.p2p)
s.sync = (f32[8], f32[8]) collective-permute-start(p), source_target_pairs={{{{0,1}}}}, {_SYNC}
d.sync = f32[8] collective-permute-done(s.sync)
s.move = (f32[8], f32[8], u32[]) copy-start(p)
d.move = f32[8] copy-done(s.move)
s.send = {_SENT} send(p, k), channel_id=1
d.send = token[] send-done(s.send), channel_id=1
s.recv = {_SENT} recv(k), channel_id=2
d.recv = (f32[8], token[]) recv-done(s.recv), channel_id=2
s.send2 = {_SENT} send(p, k), channel_id=3, {_SECOND}
d.send2 = token[] send-done(s.send2), channel_id=3, {_SECOND}
s.recv2 = {_SENT} recv(k), channel_id=4, {_SECOND}
d.recv2 = (f32[8], token[]) recv-done(s.recv2), channel_id=4, {_SECOND}
s.to-host = {_SENT} send(p, k), channel_id=5, {_HOST}
d.to-host = token[] send-done(s.to-host), channel_id=5, {_HOST}
s.from-host = {_SENT} recv(k), channel_id=6, {_HOST}
d.from-host = (f32[8], token[]) recv-done(s.from-host), channel_id=6, {_HOST}
ar = f32[8] all-reduce(p), to_apply=sum
cp = f32[8] copy(p)
ROOT r = f32[8] negate(p)
}}"""
GENERIC = {
    "all-gather": "kAllGather",
    "reduce-scatter": "kReduceScatter",
    "all-to-all": "kAllToAll",
    "collective-broadcast": "kCollectiveBroadcast",
    "copy": "kCopy",
    "gather": "kAllGather",
    "reduce": "kAllReduce",
    "permute": "kCollectivePermute",
    "p2p": "kCollectivePermute",
    "sync": "kCollectivePermute",
    "move": "kCopy",
    "send": "kSendRecv",
    "recv": "kSendRecv",
    "send2": "kSendRecv",
    "recv2": "kSendRecv",
    "to-host": "kSendHost",
    "from-host": "kRecvHost",
}
COLLECTIVES, COMPUTES = "kGpuAsyncStreamCollectives", "kGpuAsyncStreamComputes"
GPU = {
    **dict.fromkeys(("all-gather", "reduce-scatter", "all-to-all"), COLLECTIVES),
    **dict.fromkeys(("collective-broadcast", "gather", "reduce", "permute"), COLLECTIVES),
    **dict.fromkeys(("sync", "own", "group"), COLLECTIVES),
    **dict.fromkeys(("copy", "negate", "move", "thread"), COMPUTES),
    "p2p": "kGpuAsyncStreamCollectivesP2P",
    **dict.fromkeys(("send", "to-host"), "kGpuAsyncStreamSend0"),
    **dict.fromkeys(("recv", "from-host"), "kGpuAsyncStreamRecv0"),
    "send2": "kGpuAsyncStreamSend1",
    "recv2": "kGpuAsyncStreamRecv1",
}
TRANSFERS = {"send", "recv", "send2", "recv2", "to-host", "from-host"}


@pytest.fixture(scope="module")
def module() -> Module:
    return parse_module(TEXT)


def tracker_of(**options: Any) -> ResourceTracker:
    config = SchedulerConfig(**options).resolved()
    is_gpu = config.preset == "xla-gpu"
    return GpuResourceTracker(config) if is_gpu else ResourceTracker(config)


def used(module: Module, tracker: ResourceTracker, usage: Usage) -> dict[str, str]:
    """The resource that each instruction uses in one way."""
    return {
        instruction.name: tracker.resources[number].name
        for instruction in module.entry.instructions
        for number, found in tracker.uses(instruction)
        if found is usage
    }


@pytest.mark.parametrize(("preset", "resources"), [("xla-generic", GENERIC), ("xla-gpu", GPU)])
@pytest.mark.parametrize("top_down", [False, True])
def test_dones_occupy_what_starts_release_and_top_down_the_other_way(
    module: Module, preset: str, resources: dict[str, str], *, top_down: bool
) -> None:
    tracker = tracker_of(preset=preset, top_down_scheduling=top_down)
    at_start = {f"s.{name}": resource for name, resource in resources.items()}
    at_done = {f"d.{name}": resource for name, resource in resources.items()}
    if top_down:
        at_start, at_done = at_done, at_start
    assert used(module, tracker, Usage.RELEASE) == at_start
    assert used(module, tracker, Usage.OCCUPY) == at_done
    nothing = {} if preset == "xla-gpu" else {"k": "kSendHost"}
    assert used(module, tracker, Usage.NONE) == nothing


@pytest.mark.parametrize("schedules", [False, True])
def test_what_is_asynchronous_for_all_targets(module: Module, *, schedules: bool) -> None:
    """An operation with a resource, or a call on another thread; transfers where asked for."""
    tracker = tracker_of(schedule_send_recvs=schedules)
    expected = {*GENERIC, "thread", "own"}
    if not schedules:
        expected -= TRANSFERS
    assert_steps(module, tracker, expected)


def test_what_is_asynchronous_on_a_gpu(module: Module) -> None:
    """Neither what is marked as synchronous nor a call on the same thread."""
    assert_steps(module, tracker_of(preset="xla-gpu"), {*GPU} - {"sync", "copy", "negate"})


def assert_steps(module: Module, tracker: ResourceTracker, expected: set[str]) -> None:
    instructions = list(module.entry.instructions)
    starts = {i.name for i in instructions if tracker.is_start(i)}
    dones = {i.name for i in instructions if tracker.is_done(i)}
    assert starts == {f"s.{name}" for name in expected}
    assert dones == {f"d.{name}" for name in expected}
    assert all(tracker.may_be_asynchronous(i.opcode) for i in instructions if i.name in starts)
    assert not any(tracker.may_be_asynchronous(i.opcode) for i in instructions if i.name == "r")


def test_transfers_with_the_host_may_share_one_resource(module: Module) -> None:
    tracker = tracker_of(force_send_recv_to_use_same_resource=True)
    found = used(module, tracker, Usage.RELEASE)
    assert found["s.to-host"] == found["s.from-host"] == "kSendHost"
    assert used(module, tracker, Usage.OCCUPY)["d.from-host"] == "kSendHost"
    assert found["s.recv"] == "kSendRecv"


@pytest.mark.parametrize("tracks", [False, True])
def test_synchronous_operations_use_their_resource_where_asked_for(
    module: Module, *, tracks: bool
) -> None:
    tracker = tracker_of(track_sync_op_resource_usage=tracks)
    for usage in (Usage.OCCUPY, Usage.RELEASE):
        found = used(module, tracker, usage)
        own = {name: found[name] for name in ("ar", "cp", "r") if name in found}
        assert own == ({"ar": "kAllReduce", "cp": "kCopy"} if tracks else {})


@pytest.mark.parametrize(
    ("name", "option"),
    [
        ("kAllToAll", "all_to_all"),
        ("kAllGather", "all_gather"),
        ("kAllReduce", "all_reduce"),
        ("kCollectivePermute", "collective_permute"),
        ("kCopy", "copy"),
        ("kReduceScatter", "reduce_scatter"),
        ("kCollectiveBroadcast", "collective_broadcast"),
        ("kRaggedAllToAll", "ragged_all_to_all"),
        ("kSendRecv", "send_recv"),
        ("kSendHost", "send_recv_host"),
        ("kRecvHost", "send_recv_host"),
    ],
)
def test_each_limit_is_that_of_an_option(name: str, option: str) -> None:
    option = f"{option}_overlap_limit"
    tracker = tracker_of(**{option: 7})
    (resource,) = [r for r in tracker.resources if r.name == name]
    assert (resource.limit, resource.option) == (7, option)
    assert resource.hazard is (Hazard.SHAREABLE if name == "kCopy" else Hazard.UNSHAREABLE)
    assert [r.limit for r in tracker.resources if r.option != option] == [1] * (
        sum(r.option != option for r in tracker.resources)
    )


def test_the_streams_of_a_gpu_have_limits() -> None:
    options = {"parallel_collective_overlap_limit": 5, "parallel_async_compute_limit": 6}
    limits = {
        **{f"kGpuAsyncStream{name}": 4 for name in ("Send0", "Send1", "Recv0", "Recv1")},
        "kGpuAsyncStreamCollectivesP2P": 4,
        COMPUTES: 6,
        "kGpuAsyncStreamMemcpy": (1 << 31) - 1,
        COLLECTIVES: 5,
    }
    for selective in (False, True):
        tracker = tracker_of(preset="xla-gpu", enable_selective_resources=selective, **options)
        found = [r for r in tracker.resources if r.name.startswith("kGpu")]
        assert {resource.name: resource.limit for resource in found} == limits
        hazards = {r.name for r in found if r.hazard is not Hazard.UNSHAREABLE}
        assert hazards == ({"kGpuAsyncStreamMemcpy"} if selective else set())


def test_an_async_start_needs_what_its_computation_needs_at_once() -> None:
    """A collective that it wraps is no need beside its own, nor is what a group of them holds."""
    inside = """NAME {
  x = f32[8] parameter(0)
  s = (f32[8], f32[8]) collective-permute-start(x), source_target_pairs={{0,1}}
  t = (f32[8], f32[8]) collective-permute-start(x), source_target_pairs={{0,1}}
  d = f32[8] collective-permute-done(s)
  e = f32[8] collective-permute-done(t)
  ROOT o = f32[8] add(d, e)
}, execution_thread="host"
"""
    entry = """ENTRY main { p = f32[8] parameter(0)
  a = ((f32[8]), f32[8]) async-start(p), calls=f, async_execution_thread="host"
  b = ((f32[8]), f32[8]) async-start(p), calls=g, async_execution_thread="host", GROUP
  da = f32[8] async-done(a)
  db = f32[8] async-done(b)
  ROOT r = f32[8] add(da, db) }"""
    callees = inside.replace("NAME", "f") + inside.replace("NAME", "g")
    module = parse_module(
        f"HloModule m, is_scheduled=true\n{callees}{entry.replace('GROUP', _GROUP)}"
    )
    by_name = {i.name: i for i in module.entry.instructions}
    generic, gpu = tracker_of(), tracker_of(preset="xla-gpu")
    names = [resource.name for resource in gpu.resources]
    permute, collectives = names.index("kCollectivePermute"), names.index(COLLECTIVES)
    assert generic.needs(by_name["a"]) == generic.needs(by_name["b"]) == {permute: 2}
    assert gpu.needs(by_name["a"]) == {collectives: 2}
    assert gpu.needs(by_name["b"]) == {}
    assert gpu.needs(by_name["da"]) == {names.index(COMPUTES): 1}


def test_a_loop_gives_back_what_it_takes_and_keeps_what_it_only_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = parse_module("""
HloModule m
c { x = (s32[]) parameter(0) ROOT y = pred[] constant(false) }
b { ROOT x.1 = (s32[]) parameter(0) }
ENTRY e { p = (s32[]) parameter(0) ROOT w = (s32[]) while(p), condition=c, body=b }
""")
    tracker = ResourceTracker(SchedulerConfig())
    both, taken, given = 0, 1, 2
    uses = (
        *((both, Usage.OCCUPY), (taken, Usage.OCCUPY)),
        *((both, Usage.RELEASE), (given, Usage.RELEASE)),
    )
    monkeypatch.setattr(ResourceTracker, "uses", lambda *_: uses)
    loop = module.entry.root
    assert tracker.net_uses(loop) == ((taken, Usage.OCCUPY), (given, Usage.RELEASE))
    assert tracker.net_uses(loop.operands[0]) == uses
