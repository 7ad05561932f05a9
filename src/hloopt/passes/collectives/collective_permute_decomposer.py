"""Collective-permutes in loops become sends and recvs, which a pipeliner can move apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

from hloopt.analysis.async_operations import SEND_RECV, is_host_transfer
from hloopt.analysis.calls import loops_with_body
from hloopt.diagnostics import counted
from hloopt.ir.attributes.frontend_attributes import frontend_attributes, set_frontend_attributes
from hloopt.ir.attributes.typed import channel_of, pairs_of
from hloopt.ir.attributes.values.replica_groups import MOST_DEVICES
from hloopt.ir.computation import Computation
from hloopt.ir.devices.collective_devices import transfer_mode
from hloopt.ir.devices.collective_mode import collective_mode
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.devices.transfers import PAIRS, PIPELINE, STREAM, has_cycle
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, stable_order
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.ir.tuples import is_parameter_element
from hloopt.pass_framework.base import (
    Bytes,
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.collectives.collective_groups import CollectiveGroups, order_against_transfers

_TOKEN = array_shape("token")
_CONTEXT = array_shape("u32")


@register(
    "collective-permute-decomposer",
    preserves="bits",
    xla=XlaPass(
        "CollectivePermuteDecomposer",
        "xla/hlo/transforms/collectives/collective_permute_decomposer.h",
    ),
)
class CollectivePermuteDecomposer(ModulePass):
    """Split collective-permutes in bodies of while loops into send and recv.

    A permute of at least `threshold_in_bytes` whose pairs have no cycle becomes after-all, recv,
    send, recv-done and send-done, with its pairs as frontend attribute. Those of a body are
    chained in its order. The first one that sends an element of the loop's state is marked for
    the pipeliner, stream 0; where another one closes a ring with it, the one of a single pair,
    from the ring's last device to its first or the other way round, is stream 0, the other 1.

    With `pipeline_parallelism_opt_level` `enable`, only one permute of a body is split: of those
    that send an element of the state the one with the most pairs. Its recv is done before its
    send starts, so that the pipeliner can move the send into the iteration before.

    Collectives that stay, and let two devices meet that also meet in a permute that was split, or
    in other such collectives, wait for the last send-done: two that run at once on different
    streams could wait for each other. A recv waits for those that its send depends on: a device
    blocked in such a collective could not send. Loops, calls and conditionals count as the
    collectives in them. A permute whose channel a send or recv of the module has stays.
    O(edges of the bodies).

    Compared with XLA:GPU 0.10.2, whose threshold is the largest number unless it is set: that one
    also splits permutes whose numbers would stand for other devices in a send, fails on control
    dependencies, and lets collectives wait that the send itself needs.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        threshold_in_bytes: Bytes = option(0, "smaller permutes stay")
        pipeline_parallelism_opt_level: Literal["disable", "enable"] = option(
            "disable", "`enable`: split one per body, its send after its recv-done"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        parents = module.computations_with(Opcode.COLLECTIVE_PERMUTE)
        bodies = dict.fromkeys(filter(loops_with_body, parents))
        for permute in module.instructions(Opcode.COLLECTIVE_PERMUTE):
            if permute.parent not in bodies:
                context.missed(permute, "it is not in the body of a while loop")
        before = module.version
        if bodies:
            groups = CollectiveGroups(device_counts(module))
            taken = _transfers_by_channel(module)
            for body in bodies:
                self._run_on(body, groups, taken, context)
        return module.version != before

    def _run_on(
        self,
        body: Computation,
        groups: CollectiveGroups,
        taken: dict[int | None, Instruction],
        context: PassContext,
    ) -> None:
        candidates = []
        for permute in [i for i in post_order(body) if i.opcode is Opcode.COLLECTIVE_PERMUTE]:
            other = taken.get(channel_of(permute))
            if other is not None:
                context.missed(permute, f"%{other.name} has the same channel")
            elif reason := self.why_not(permute, groups.grid):
                context.missed(permute, reason)
            else:
                candidates.append(permute)
        streams = _streams([p for p in candidates if is_parameter_element(p.operands[0])])
        is_parallel = self.options.pipeline_parallelism_opt_level == "enable"
        if is_parallel and candidates:
            chosen = max(candidates, key=lambda permute: len(_pairs(permute)))
            for permute in candidates:
                if permute is not chosen:
                    context.missed(permute, f"%{chosen.name} is the one of its loop to be split")
            candidates = [chosen]
        if not candidates:
            return
        # One application: split one by one, those of a ring could wait for each other.
        what = "the permutes of its loop's body are split into send and recv"
        if not context.apply(candidates[0], what, remark=False):
            return
        conflicts = groups.in_conflict(body, candidates)
        splits = []
        for permute in candidates:
            stream = streams.get(permute)
            splits.append(_split(permute, stream, is_parallel=is_parallel))
            on_stream = f", pipelined on stream {stream}" if stream else ""
            context.applied(permute, f"split into send and recv{on_stream}")
            context.count("permutes split")
        for earlier, later in pairwise(splits):
            later.recv.add_control_predecessor(earlier.send)
            later.recv_done.add_control_predecessor(earlier.send_done)
        if is_parallel:
            for collective in conflicts:
                notes = frontend_attributes(collective) | {STREAM: "p2p"}
                set_frontend_attributes(collective, notes)
        order_against_transfers(
            conflicts, [(split.recv, split.send, split.send_done) for split in splits]
        )
        # Sends end in nothing: their order in the list is that of their text from now on.
        body.reorder((stable_order if body.module.is_scheduled else post_order)(body))

    def why_not(self, permute: Instruction, grid: Grid) -> str | None:
        """The reason why a permute in a loop's body stays as it is; None where it can be split."""
        if len(permute.operands) != 1 or not permute.shape.is_array:
            return f"it has {counted(len(permute.operands), 'operand')}"
        size, least = shape_bytes(permute.shape), self.options.threshold_in_bytes
        if size < least:
            return f"it has {counted(size, 'byte')}, and threshold_in_bytes is {least:,}"
        target_of = dict(_pairs(permute))
        if has_cycle(target_of):
            return "its pairs have a cycle: each send would wait for a recv that waits for it"
        if permute.has_control_dependencies:
            return "it has control dependencies"
        if grid.device_count > MOST_DEVICES:
            return (
                f"which of {counted(grid.device_count, 'device')} meet in others is not looked at"
            )
        mode, of_transfers = collective_mode(permute), transfer_mode(permute, grid)
        if grid.device_count > 1 and mode is not of_transfers:
            return f"its pairs are {mode} and would be {of_transfers} in a send"
        if self.options.pipeline_parallelism_opt_level == "enable" and not is_parameter_element(
            permute.operands[0]
        ):
            sent = permute.operands[0].name
            return f"%{sent}, which it sends, is not an element of the loop's state"
        return None


class _Split(NamedTuple):
    """The fate of a permute."""

    recv: Instruction
    send: Instruction
    recv_done: Instruction
    send_done: Instruction


def _transfers_by_channel(module: Module) -> dict[int | None, Instruction]:
    """By channel a send or recv between devices that the module has already."""
    return {
        channel_of(transfer): transfer
        for opcode in SEND_RECV
        for transfer in module.instructions(opcode)
        if not is_host_transfer(transfer)
    }


def _pairs(permute: Instruction) -> tuple[tuple[int, int], ...]:
    lists = pairs_of(permute)
    return tuple((source, target) for source, target in lists)


def _streams(candidates: Sequence[Instruction]) -> dict[Instruction, str]:
    """The stream of each permute that is to be pipelined: the first, and what makes a ring of it.

    O(pairs).
    """
    if not candidates:
        return {}
    first = candidates[0]
    for other in candidates[1:]:
        for back, chain in ((first, other), (other, first)):
            if _close_ring(_pairs(back), _pairs(chain)):
                return {back: "0", chain: "1"}
    return {first: "0"}


def _close_ring(back: Sequence[tuple[int, int]], chain: Sequence[tuple[int, int]]) -> bool:
    """Whether a chain 0, 1, … n or n, … 1, 0 and one pair back make a ring of devices.

    The pairs of the chain are in the order of their smaller device.
    """
    count = len(chain)
    forward = tuple((i, i + 1) for i in range(count))
    backward = tuple((i + 1, i) for i in range(count))
    return (tuple(back), tuple(chain)) in ((((count, 0),), forward), (((0, count),), backward))


def _split(permute: Instruction, stream: str | None, *, is_parallel: bool) -> _Split:
    """Replace a permute. O(its users)."""
    body = permute.parent
    data = permute.operands[0]
    channel = {k: v for k, v in permute.attributes.items() if k == "channel_id"}
    source = {k: v for k, v in permute.attributes.items() if k == "metadata"}
    pipeline = {} if stream is None else {PIPELINE: stream}
    notes = frontend_attributes(permute) | pipeline
    notes[PAIRS] = permute.attributes["source_target_pairs"]
    if is_parallel:
        notes[STREAM] = "p2p"

    def step(
        opcode: Opcode, elements: Sequence[Shape], operands: Sequence[Instruction], *, ends: bool
    ) -> Instruction:
        shape = elements[0] if len(elements) == 1 else tuple_shape(elements)
        made = body.add(
            opcode,
            shape,
            operands,
            name=f"{permute.name}-{opcode}",
            attributes=channel if ends else channel | source,
        )
        set_frontend_attributes(made, pipeline if ends else notes)
        return made

    token = body.add(Opcode.AFTER_ALL, _TOKEN, name=f"{permute.name}-after-all")
    context = (data.shape, _CONTEXT, _TOKEN)
    recv = step(Opcode.RECV, context, [token], ends=False)
    send = step(Opcode.SEND, context, [data, token], ends=False)
    recv_done = step(Opcode.RECV_DONE, (data.shape, _TOKEN), [recv], ends=True)
    send_done = step(Opcode.SEND_DONE, (_TOKEN,), [send], ends=True)
    if is_parallel:
        send.add_control_predecessor(recv_done)
    else:
        send.add_control_predecessor(recv)
        recv_done.add_control_predecessor(send)
    received = body.add(
        Opcode.GET_TUPLE_ELEMENT,
        permute.shape,
        [recv_done],
        name=f"{permute.name}-recv-data",
        attributes={"index": "0"},
    )
    permute.replace_all_uses_with(received)
    body.remove(permute)
    return _Split(recv, send, recv_done, send_done)
