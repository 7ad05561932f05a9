"""Roofline: times from bytes, flops and the rates of a target, whatever the target is."""

from __future__ import annotations

from hloopt.analysis.async_operations import SEND_RECV, SYNC_COLLECTIVES, wrapped
from hloopt.analysis.gpu_async import is_gpu_begin, is_gpu_end
from hloopt.analysis.latency.estimates import Estimates
from hloopt.analysis.latency.model import (
    FREE_TIME,
    ORDINARY_EDGE_TIME,
    Origin,
    TargetModel,
    Time,
    stated_latency,
)
from hloopt.analysis.latency.run_times import CONTROL_FLOW, RunTimes
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.opcode import ASYNC
from hloopt.targets.target import Target


class RooflineModel(TargetModel):
    """Times of one module in microseconds, by bytes and flops over the rates of any target.

    Launches take no time. A loop, conditional or call takes what it runs, an instruction after the
    other. Times whose bytes and flops are not known are guesses: custom calls that nobody knows,
    sorts, transfers where the target names no link.
    """

    def __init__(self, target: Target, module: Module, *, schedule_send_recvs: bool = True) -> None:
        super().__init__(target)
        self._schedule_send_recvs = schedule_send_recvs
        self._estimates = Estimates(module, target)
        self._called = RunTimes(self, module)

    def _node_time(self, instruction: Instruction) -> Time:
        """O(fused instructions), of control flow linear in what it calls."""
        opcode = instruction.opcode
        if is_gpu_begin(instruction) or is_gpu_end(instruction) or opcode in ASYNC:
            return FREE_TIME
        stated = stated_latency(instruction, self.cycles_per_microsecond)
        if stated is not None:
            return Time(stated, Origin.STATED)
        if opcode in SYNC_COLLECTIVES:
            return self._estimates.exchange(instruction)
        if opcode in CONTROL_FLOW:
            return self._called.called_time(instruction)
        return self._estimates.work(instruction)

    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        """O(1) but for a collective, which takes O(devices), and what is called."""
        if source.opcode in SEND_RECV and not self._schedule_send_recvs:
            return ORDINARY_EDGE_TIME
        if is_gpu_begin(source) and is_gpu_end(target):
            return self.whole_time(source)
        return ORDINARY_EDGE_TIME

    def whole_time(self, collective: Instruction) -> Time:
        """O(devices), and linear in what is called."""
        stated = stated_latency(collective, self.cycles_per_microsecond)
        if stated is not None:
            return Time(stated, Origin.STATED)
        if collective.opcode is Opcode.COPY_START:
            return self._estimates.copy(collective)
        if collective.opcode is not Opcode.ASYNC_START:
            return self._estimates.exchange(collective)
        inner = wrapped(collective)
        if inner.opcode in SYNC_COLLECTIVES:
            return self._estimates.exchange(inner)
        return self._called.called_time(collective)
