"""Facts that one run of rematerialization shares between the computations of a module."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from time import monotonic

from hloopt.analysis.call_graph import CallContext, CallGraph
from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.side_effects import SideEffects
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.pass_framework.base import PassContext
from hloopt.passes.rematerialization.options import RematerializationOptions
from hloopt.passes.rematerialization.sizes import Sizes
from hloopt.passes.rematerialization.tracker import MemoryTracker
from hloopt.passes.rematerialization.values import UnreadOperands

_LONG_SECONDS = 180.0
_NEVER_AGAIN = {
    opcode: f"it is a {opcode}"
    for opcode in (
        *(Opcode.CALL, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CONSTANT, Opcode.PARAMETER),
        Opcode.CUSTOM_CALL,
    )
}
_COLLECTIVES = frozenset(
    (
        *(Opcode.ALL_GATHER, Opcode.ALL_GATHER_START, Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START),
        *(Opcode.REDUCE_SCATTER, Opcode.ALL_TO_ALL, Opcode.RAGGED_ALL_TO_ALL),
        Opcode.COLLECTIVE_BROADCAST,
    )
)
"""Collectives that may run again: all devices run the same program."""


class State:
    """Options, peaks and facts of one run."""

    def __init__(
        self, module: Module, options: RematerializationOptions, context: PassContext
    ) -> None:
        self.module = module
        self.options = options
        self.context = context
        self.sizes = Sizes(options.size_function, options.compact_shape_function)
        self.peaks: dict[Computation, int] = {}
        """The peak of each computation of control flow, in bytes."""
        self.done: set[Computation] = set()
        """The computations that an algorithm has gone through."""
        self.graph = CallGraph.build(module)
        self._unread = UnreadOperands()
        self._effects = SideEffects(module)
        self._costs = CostAnalysis(module, as_xla=True)
        self._reasons: dict[Instruction, str | None] = {}
        self._channel_ids: Iterator[int] = unused_channel_ids(module)
        self._begun = monotonic() - options.simulated_elapsed_seconds
        self._warned: set[str] = set()

    # -- memory -------------------------------------------------------------------------------

    def tracker(self, computation: Computation) -> MemoryTracker:
        return MemoryTracker(
            computation,
            self.sizes,
            host_memory_space=self.options.host_memory_space,
            unread=self._unread,
        )

    def callees_memory(self, instruction: Instruction) -> int:
        """Bytes that the computations need which an instruction calls as control flow."""
        if not instruction.called or instruction.opcode not in CONTROL_FLOW_CALLERS:
            return 0
        return sum(self.peaks.get(called, 0) for called in instruction.called)

    def find_peaks(self, threads: Collection[str], *, callees_on_own_thread: bool = False) -> None:
        """Find the peaks of all computations of control flow on these threads, callees first.

        With `callees_on_own_thread` a callee counts only where it runs on the thread of its caller.
        Linear in the operands and slots of these computations.
        """
        for node in self.graph.visit_order(visit_unreachable_nodes=False):
            computation = node.computation
            if node.context is CallContext.CONTROL_FLOW and (
                not threads or computation.execution_thread in threads
            ):
                self.peaks[computation] = self._peak(computation, callees_on_own_thread)

    def _peak(self, computation: Computation, only_own_thread: bool) -> int:
        tracker = self.tracker(computation)
        peak = 0
        for item in tracker.sequence:
            instruction = item.instruction
            tracker.begin(item)
            if not only_own_thread or all(
                called.execution_thread == computation.execution_thread
                for called in instruction.called
            ):
                peak = max(peak, tracker.memory + self.callees_memory(instruction))
            else:
                peak = max(peak, tracker.memory)
            tracker.end()
        return peak

    # -- facts about instructions ---------------------------------------------------------------

    def why_not(self, instruction: Instruction) -> str | None:
        """The reason why an instruction must not run twice, or None where it may."""
        if instruction not in self._reasons:
            self._reasons[instruction] = self._why_not(instruction)
        return self._reasons[instruction]

    def _why_not(self, instruction: Instruction) -> str | None:
        opcode = instruction.opcode
        if opcode in _NEVER_AGAIN:
            return _NEVER_AGAIN[opcode]
        if opcode is Opcode.COPY:
            is_same = instruction.shape is instruction.operands[0].shape
            return "it is a copy that does not change the layout" if is_same else None
        if opcode in _COLLECTIVES:
            fixed = constrains_layout(instruction)
            return "it is a collective with constrained layout" if fixed else None
        return "it has a side effect" if self._effects.of(instruction) else None

    def may_run_again(self, instruction: Instruction) -> bool:
        return self.why_not(instruction) is None

    def note_clone(self, original: Instruction, clone: Instruction) -> None:
        """Let a clone, and the computations it owns, have the facts of its original."""
        self._reasons[clone] = self._reasons.get(original)
        for copied, called in zip(clone.called, original.called, strict=True):
            self._effects.add_copy(copied, called)
            if called in self.peaks:
                self.peaks[copied] = self.peaks[called]

    def seconds(self, instruction: Instruction) -> float:
        """The time of one run by the rates of the options. O(1), but for computations new to it."""
        options = self.options
        cost = self._costs.of(instruction)
        amounts = (
            (cost.flops, options.flops_per_second),
            (cost.transcendentals, options.transcendentals_per_second),
            (cost.bytes_accessed, options.bytes_per_second),
        )
        return max((amount / rate for amount, rate in amounts if rate), default=0.0)

    def next_channel_id(self) -> int:
        return next(self._channel_ids)

    # -- reports ------------------------------------------------------------------------------

    def report(self, original: Instruction, new: Instruction) -> None:
        if self.options.on_rematerialized is not None:
            self.options.on_rematerialized(original, new)

    def warn_once(self, kind: str, text: str) -> None:
        if kind not in self._warned:
            self._warned.add(kind)
            self.context.note(text)

    def check_time(self) -> None:
        """Warn once where the run takes longer than three minutes."""
        if monotonic() - self._begun > _LONG_SECONDS:
            self.warn_once(
                "time",
                "rematerialization is taking too long: more than three minutes; a larger "
                "min_remat_size or memory_limit_bytes, or algorithm always, makes it faster",
            )
