"""Steps that begin something asynchronous; its done comes some steps later."""

from __future__ import annotations

from collections.abc import Sequence

from schedule_fuzz_lib.work import gemm, reduction
from schedule_fuzz_lib.writer import DEVICES, Array, Scope, vector

_HALF = DEVICES // 2
GROUPS = (
    "{{0,1,2,3,4,5,6,7}}",
    "{{0,1,2,3},{4,5,6,7}}",
    "{{0,4},{1,5},{2,6},{3,7}}",
    "{{0,1},{2,3},{4,5},{6,7}}",
    "{{0,2},{1,3},{4,6},{5,7}}",
)
_RING = "source_target_pairs={{0,1},{1,2},{2,3},{3,4},{4,5},{5,6},{6,7},{7,0}}"
_PAIRS = "source_target_pairs={{0,1},{1,0},{2,3},{3,2}}"
_SYNC = '{"collective_backend_config":{"is_sync":true}}'


def all_reduce(scope: Scope, notes: Sequence[str] = ()) -> None:
    """An all-reduce with opcodes of its own."""
    a = _own(scope)
    rest = f"all-reduce-start({a.name}){_meeting(scope)}, to_apply={reduction(scope)}"
    start = _start(scope, "all-reduce-start", a.shape, rest, notes)
    _finish(scope, "all-reduce-done", start, a.size, notes)


def all_gather(scope: Scope, notes: Sequence[str] = ()) -> None:
    """An all-gather with opcodes of its own."""
    a = _own(scope)
    if a.size > max(scope.program.theme.sizes):  # of a gathered one, perhaps
        a = scope.resized(a, scope.size())
    groups = scope.pick(GROUPS)
    size = a.size * (groups.index("}") // 2)
    rest = f"all-gather-start({a.name}){_meeting(scope, groups)}, dimensions={{0}}"
    start = _start(scope, "all-gather-start", f"({a.shape}, {vector(size)})", rest, notes)
    _finish(scope, "all-gather-done", start, size, notes)


def permute(scope: Scope, notes: Sequence[str] = ()) -> None:
    """A collective-permute, perhaps on the stream for transfers."""
    a = _own(scope)
    channel = scope.program.channel()
    pairs = scope.pick((_RING, _PAIRS))
    rest = f"collective-permute-start({a.name}), channel_id={channel}, {pairs}"
    if scope.chance(0.15):
        notes = (*notes, '_xla_gpu_collective_stream="p2p"')
        scope.program.features.add("stream of transfers")
    start = _start(scope, "collective-permute-start", f"({a.shape}, {a.shape})", rest, notes)
    _finish(scope, "collective-permute-done", start, a.size, notes)


def wrapped(scope: Scope, notes: Sequence[str] = ()) -> None:
    """A collective that an async-start wraps."""
    a = _own(scope)
    opcode = scope.pick(("reduce-scatter", "all-to-all", "collective-broadcast", "all-reduce"))
    if a.size % DEVICES:
        opcode = "collective-broadcast"
    groups = GROUPS[1] if opcode == "reduce-scatter" else scope.pick(GROUPS)
    if opcode == "all-to-all":
        groups = GROUPS[0]
    size = a.size
    shape = vector(size)
    if opcode == "reduce-scatter":
        size //= _HALF
        shape = vector(size)
    call = f"{opcode}(x){_meeting(scope, groups)}"
    if opcode in ("reduce-scatter", "all-to-all"):
        call += ", dimensions={0}"
    if "reduce" in opcode:
        call += f", to_apply={reduction(scope)}"
    else:
        call = call.replace(", use_global_device_ids=true", "")
    body = scope.computation("async", (f"x = {a.shape} parameter(0)", f"ROOT y = {shape} {call}"))
    start = _start(
        scope,
        f"{opcode}-start",
        f"(({a.shape}), {shape})",
        f"async-start({a.name}), calls={body}",
        notes,
    )
    scope.program.features.add("async-start")
    _finish(scope, "async-done", start, size, notes)


def other_thread(scope: Scope, notes: Sequence[str] = ()) -> None:
    """A call that runs on a thread of its own, or on the same."""
    a = _own(scope)
    thread = "" if scope.chance(0.1) else "parallel"
    stream = '_xla_stream_annotation="collective"'
    mine = (*notes, stream) if scope.chance(0.1) else notes
    parameter = f"x = {a.shape} parameter(0)"
    inner = scope.computation("inner", (parameter, f"ROOT y = {a.shape} negate(x)"), thread)
    opcode = scope.pick(("call(x), to_apply", "fusion(x), kind=kLoop, calls"))
    root = f"ROOT y = {a.shape} {opcode}={inner}"
    body = scope.computation("async", (parameter, root), thread)
    where = f', async_execution_thread="{thread}"' if thread else ""
    rest = f"async-start({a.name}), calls={body}{where}"
    shape = f"(({a.shape}), {a.shape}, s32[])"
    start = _start(scope, "call-start", shape, rest, mine)
    scope.program.features.add("threads")
    _finish(scope, "async-done", start, a.size, mine)


def host_copy(scope: Scope, notes: Sequence[str] = ()) -> None:
    """A copy to the host and back, or one that stays on the device."""
    a = scope.array()
    scope.program.features.add("copies")
    if scope.chance(0.4):
        shape = f"({a.shape}, {a.shape}, u32[])"
        start = _start(scope, "copy-start", shape, f"copy-start({a.name})", notes)
        _finish(scope, "copy-done", start, a.size, notes)
        return
    there = f"{a.shape}{{0:S(5)}}"
    shape = f"({there}, {a.shape}, u32[])"
    out = _start(scope, "copy-start", shape, f"copy-start({a.name})", notes)

    def back() -> None:
        done = scope.add("copy-done", there, f"copy-done({out})")
        shape = f"({a.shape}, {there}, u32[])"
        again = scope.add("copy-start", shape, f"copy-start({done})")
        _finish(scope, "copy-done", again, a.size, ())

    scope.pending.append(back)


def slice_copy(scope: Scope, notes: Sequence[str] = ()) -> None:
    """A copy of a slice of a larger array, mostly to or from the host, that a fusion makes."""
    a = scope.array()
    size = max(a.size // 2, 1)
    at = scope.integer(0)
    place = "{0:S(5)}" if scope.chance(0.8) else ""
    config = 'backend_config={"dynamic_slice_config":{"byte_offset":"0","byte_stride":"0"}}'
    if scope.chance(0.4):
        large = vector(2 * a.size) + place
        host = scope.add("custom-call", large, 'custom-call(), custom_call_target="h"')
        parameters = [f"x = {large} parameter(0)", f"u = {a.shape} parameter(1)"]
        hero = f"{large} dynamic-update-slice(x, u, n), {config}"
        operands, shapes, shape = f"{host}, {a.name}, {at}", f"{large}, {a.shape}, s32[]", large
        arguments = "x, u, n"
    else:
        large, shape = a.shape + place, vector(size)
        host = a.name
        if place:
            host = scope.add("custom-call", large, f'custom-call({a.name}), custom_call_target="h"')
        parameters = [f"x = {large} parameter(0)"]
        hero = f"{shape} dynamic-slice(x, n), dynamic_slice_sizes={{{size}}}, {config}"
        operands, shapes = f"{host}, {at}", f"{large}, s32[]"
        arguments = "x, n"
    parameters.append(f"n = s32[] parameter({len(parameters)})")
    fused = scope.computation("fused", (*parameters, f"ROOT y = {hero}"))
    root = f"ROOT f = {shape} fusion({arguments}), kind=kLoop, calls={fused}"
    body = scope.computation("async", (*parameters, root))
    rest = f"async-start({operands}), calls={body}"
    start = _start(scope, "fusion-start", f"(({shapes}), {shape}, u32[])", rest, notes)
    scope.program.features.add("copies of slices")
    if shape == vector(size):
        _finish(scope, "async-done", start, size, notes)
        return

    def done() -> None:
        whole = scope.add("fusion-done", shape, f"async-done({start})", notes)
        rest = f'custom-call({whole}), custom_call_target="h"'
        scope.add_array("custom-call", size, rest)

    scope.pending.append(done)


def transfer(scope: Scope) -> None:
    """A send and its receive between devices."""
    a = scope.array()
    channel = scope.program.channel()
    token = scope.add("after-all", "token[]", "after-all()")
    notes = ['_xla_send_recv_source_target_pairs="{{0,1},{1,2}}"']
    if scope.chance(0.3):
        notes.append(f'_xla_send_recv_pipeline="{scope.pick((0, 1))}"')
    scope.program.features.add("send and recv")
    shape = f"({a.shape}, u32[], token[])"
    rest = f"recv({token}), channel_id={channel}"
    recv = scope.add("recv", shape, rest, notes)
    scope.pending.append(lambda: _received(scope, recv, a, channel, notes))
    rest = f"send({a.name}, {token}), channel_id={channel}"
    send = scope.add("send", shape, rest, notes)

    def sent() -> None:
        rest = f"send-done({send}), channel_id={channel}"
        scope.others.append(scope.add("send-done", "token[]", rest, notes))

    scope.pending.append(sent)


def _received(scope: Scope, recv: str, a: Array, channel: int, notes: list[str]) -> None:
    rest = f"recv-done({recv}), channel_id={channel}"
    done = scope.add("recv-done", f"({a.shape}, token[])", rest, notes)
    scope.add_array("gte", a.size, f"get-tuple-element({done}), index=0")


def group(scope: Scope) -> None:
    """A scheduling group: one or two operations, and products that depend on neither."""
    number = scope.program.channel()
    notes = [f'_scheduling_group_id="{number}"']
    if scope.chance(0.15):
        notes.append('keep_original_sequence_order_in_group="true"')
    scope.program.features.add("groups")
    before = list(scope.arrays)
    for _ in range(scope.pick((1, 1, 2))):
        scope.arrays, mine = list(before), scope.arrays
        scope.pick((all_reduce, all_gather, permute, other_thread))(scope, notes)
        scope.arrays = mine + [array for array in scope.arrays if array not in mine]
    for _ in range(scope.pick((0, 1, 2))):
        scope.arrays, mine = list(before), scope.arrays
        gemm(scope, tuple(notes))
        scope.arrays = mine + [array for array in scope.arrays if array not in mine]


STEPS = (
    *(all_reduce, all_reduce, all_gather, all_gather, permute, permute),
    *(wrapped, wrapped, other_thread, host_copy, slice_copy),
)


def _own(scope: Scope) -> Array:
    """An array, often one that nobody else reads: what XLA's copy insertion leaves."""
    a = scope.array()
    if scope.chance(0.5):
        return a
    return Array(scope.add("copy", a.shape, f"copy({a.name})"), a.size)


def _meeting(scope: Scope, groups: str = "") -> str:
    groups = groups or scope.pick(GROUPS)
    channel = scope.program.channel()
    return f", channel_id={channel}, replica_groups={groups}, use_global_device_ids=true"


def _start(scope: Scope, stem: str, shape: str, rest: str, notes: Sequence[str]) -> str:
    hinted = list(notes)
    if not notes and scope.chance(scope.program.theme.hints):
        kind = scope.pick(("force_delay", "force_delay_async"))
        hinted.append(f'scheduler_hint="{kind}"')
        scope.program.features.add("hints")
    config = ""
    is_own = stem in ("all-reduce-start", "all-gather-start", "collective-permute-start")
    if is_own and rest.startswith(stem) and not notes and scope.chance(0.08):
        config = _SYNC
        scope.program.features.add("synchronous starts")
    return scope.add(stem, shape, rest, hinted, config)


def _finish(scope: Scope, opcode: str, start: str, size: int, notes: Sequence[str]) -> None:
    """Let the done come later."""

    def done() -> None:
        hinted = list(notes)
        if not notes and scope.chance(scope.program.theme.hints):
            hinted.append('scheduler_hint="force_delay_async"')
        stem = opcode if "async" not in opcode else start.rsplit(".", 1)[0].replace("start", "done")
        scope.add_array(stem, size, f"{opcode}({start})", hinted)

    scope.pending.append(done)
