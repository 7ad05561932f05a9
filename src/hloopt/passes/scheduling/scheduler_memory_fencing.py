"""Keep large values from living on because an asynchronous operation moves before their end."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from hloopt.analysis.dataflow import Dataflow
from hloopt.analysis.gpu_async import is_gpu_done, is_gpu_start
from hloopt.analysis.reachability import Reachability
from hloopt.diagnostics import PassRefused, counted
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.memory.buffers import Buffer, Buffers
from hloopt.pass_framework.base import (
    Bytes,
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)


@register(
    "scheduler-memory-fencing",
    preserves="bits",
    xla=XlaPass(
        "SchedulerMemoryFencing", "xla/service/scheduler_memory_fencing.h", compared="tests"
    ),
)
class SchedulerMemoryFencing(ModulePass):
    """Let the readers of large buffers come before asynchronous operations that start later.

    The schedule the module has shows where a buffer ends. What starts after the next operation
    that is under way there, or that begins then, has to wait for all readers of the buffer: control
    dependencies say so to the latency-hiding scheduler. Arguments, results and what several
    computations read are left alone. O(instructions + uses of large buffers), and what is asked of
    reachability.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        threshold_bytes: Bytes = option(
            -1, "the least size of a buffer; 0: 1 % of `memory_limit`; negative: none is fenced"
        )
        slack_windows: int = option(1, "how many operations may still start before")
        memory_limit: Bytes | None = option(None, "no threshold is larger")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        threshold = self._threshold()
        if threshold is None or not module.is_scheduled:
            return False
        before = module.version
        flow = Dataflow.of(module)
        windows: dict[Computation, _Windows] = {}
        for buffer in Buffers.of(flow).all:
            if context.is_at_limit:
                break
            if shape_bytes(flow.shape(buffer.values[0])) < threshold:
                continue
            readers = _readers(flow, buffer)
            if not readers:
                continue
            computation = readers[0].parent
            if computation not in windows:
                windows[computation] = _Windows(computation)
            start = windows[computation].fenced_start(readers, self.options.slack_windows)
            if start is not None and windows[computation].fence(readers, start):
                context.apply(start, f"waits for the readers of {counted(buffer.size, 'byte')}")
                context.count("buffers fenced")
        return module.version != before

    def _threshold(self) -> int | None:
        threshold, limit = self.options.threshold_bytes, self.options.memory_limit
        if threshold < 0:
            return None
        if threshold:
            return threshold if limit is None else min(threshold, limit)
        if limit is None:
            raise PassRefused("a threshold of 0 is 1 % of memory_limit, which is not given")
        return limit // 100


def _readers(flow: Dataflow, buffer: Buffer) -> list[Instruction]:
    """The readers of a buffer; nobody where its end cannot be moved: arguments, results, shared
    ones."""
    if buffer.is_live_out:
        return []
    holders = {position.instruction for v in buffer.values for position in flow.positions(v)}
    if any(holder.is_root or holder.opcode is Opcode.PARAMETER for holder in holders):
        return []
    readers = dict.fromkeys(use.user for v in buffer.values for use in flow.uses(v))
    within = {instruction.parent for instruction in (*holders, *readers)}
    return list(readers) if len(within) == 1 else []


class _Windows:
    """The asynchronous operations of a computation, from start to done, in order of the starts."""

    def __init__(self, computation: Computation) -> None:
        computation.link_users()
        self.computation = computation
        self.position = {i: number for number, i in enumerate(computation.instructions)}
        self.starts: list[Instruction] = []
        dones: list[int] = []
        for instruction in computation.instructions:
            done = next(filter(is_gpu_done, instruction.users), None)
            if done is not None and is_gpu_start(instruction):
                self.starts.append(instruction)
                dones.append(self.position[done])
        self._latest_done = list(accumulate(dones, max))
        self._paths: Reachability | None = None

    def fenced_start(self, readers: list[Instruction], slack: int) -> Instruction | None:
        """The start that has to come after all readers; None where there is none."""
        end = max(map(self.position.__getitem__, readers))
        first = bisect_right(self._latest_done, end) + slack
        return next((s for s in self.starts[first:] if self.position[s] > end), None)

    def fence(self, readers: list[Instruction], start: Instruction) -> bool:
        """Let `start` wait for `readers`; whether it did not already."""
        if self._paths is None:
            self._paths = Reachability(self.computation)
        free = [reader for reader in readers if not self._paths.reachable(reader, start)]
        for reader in free:
            start.add_control_predecessor(reader)
        if free:
            self._paths.update([start])
        return bool(free)
