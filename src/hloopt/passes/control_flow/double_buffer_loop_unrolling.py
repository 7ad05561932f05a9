"""Loops whose body does the work of two trips, or of all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hloopt.analysis.async_operations import OWN_DONES, OWN_STARTS, SYNC_COLLECTIVES
from hloopt.analysis.loops.trip_count import loop_trips
from hloopt.diagnostics import counted
from hloopt.ir.clone import clone_to_change
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import computation_post_order
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.call_graph.flatten_call_graph import FlattenCallGraph
from hloopt.passes.collectives.collective_pipeliner.effects import has_effect
from hloopt.passes.control_flow.unrolling import Unroller, communicates, restate
from hloopt.passes.rewriting.selection import selected

_COLLECTIVES = frozenset((*SYNC_COLLECTIVES, *OWN_STARTS, *OWN_DONES))


@register(
    "double-buffer-loop-unrolling",
    preserves="bits",
    xla=XlaPass(
        "gpu::DoubleBufferLoopUnrolling",
        "xla/backends/gpu/transforms/double_buffer_loop_unrolling.h",
    ),
)
class DoubleBufferLoopUnrolling(ModulePass):
    """Let each trip of a counted while loop do the work of two, or a single one the work of all.

    So a collective of one trip can overlap work of the trip before, and each of the two trips can
    have buffers of its own. With `double-buffer` the body is followed by a copy of itself, which
    reads what it made; of an odd number of trips the first is peeled off in front of the loop. With
    `full-unroll` the body is followed by as many copies as there are further trips; with `auto`,
    loops with a collective in their body are unrolled by two, all others stay. As in XLA, control
    dependencies let what reads the state in a copy wait for the trip before, but for collectives,
    and for arithmetic with a constant, which may be folded. Copied collectives get channel ids of
    their own; `known_trip_count`, `known_init_step` and `dynamic_variables` of the backend_config
    follow, and `dynamic_slice_config` of slices, as in newer XLA. Inner loops come first. If
    anything changed, the call graph is flattened.

    A loop stays unless its trip count, two at least, is proved from its text: XLA believes
    `known_trip_count`. It stays, too, where body or condition have side effects, for which only
    separate trips state an order; XLA unrolls it. A copy in a scheduling group (annotation
    `_scheduling_group_id`) is in a new one, as what depends on each other in one group cannot be
    scheduled; XLA 0.10.2 keeps the group. Where copies were inserted already, insert them again
    (`copy-insertion`). Asked of XLA:GPU's compiler, where the pass is called
    loop-double-buffer-transformer: names, channel ids, control dependencies, peeling, nested loops;
    `auto` cannot be asked for there. O(instructions of the result), and for each trip
    O(elements of the state · what reads them).
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        unroll_strategy: Literal["double-buffer", "full-unroll", "auto"] = option(
            "double-buffer", "two trips in one, all in one, or two where there is a collective"
        )
        loops: tuple[str, ...] = option((), "names of the loops to unroll; none: all")
        max_instructions: int = option(
            1_000_000, "full-unroll leaves a loop alone whose body would get more instructions"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        unroller = Unroller(module)
        loops: dict[Computation, list[Instruction]] = {}
        found = (
            each
            for computation in computation_post_order(module)
            if not computation.is_fusion
            for each in computation.instructions
            if each.opcode is Opcode.WHILE
        )
        for loop in selected(list(found), self.options.loops, "while loop", context):
            loops.setdefault(loop.parent, []).append(loop)
        for computation, here in loops.items():
            peeled: dict[Instruction, list[Instruction]] = {}
            for loop in here:
                if reason := self.why_not(loop):
                    context.missed(loop, reason)
                elif context.apply(loop, self._what(loop)):
                    peeled[loop] = self._unroll(loop, unroller, context)
            if any(peeled.values()):
                computation.splice(peeled)
        if module.version != before:
            FlattenCallGraph().run(module, PassContext(wants_remarks=False))
        return module.version != before

    def why_not(self, loop: Instruction) -> str | None:
        """The reason why a loop is not unrolled; None where it can be. O(what it calls)."""
        trips = loop_trips(loop)
        if trips.computed is None:
            stated = "" if trips.stated is None else "; known_trip_count is not believed"
            return f"its trip count is not proved: {trips.reason}{stated}"
        if trips.computed < 2:
            return f"it makes {'one trip' if trips.computed else 'no trip'}, two are needed"
        body, condition = loop.called
        if self.options.unroll_strategy == "auto" and not any(map(communicates, body.instructions)):
            return "its body has no collective, and unroll_strategy is auto"
        for instruction in (*body.instructions, *condition.instructions):
            if has_effect(instruction, but=_COLLECTIVES):
                return f"%{instruction.name} in it has a side effect, which trips keep in order"
        if self.options.unroll_strategy == "full-unroll":
            size, limit = trips.computed * len(body), self.options.max_instructions
            if size > limit:
                return (
                    f"its body would have {counted(size, 'instruction')}, and max_instructions is "
                    f"{limit:,}"
                )
        return None

    def _what(self, loop: Instruction) -> str:
        trips = loop_trips(loop).computed or 0
        if self.options.unroll_strategy == "full-unroll":
            return f"all {counted(trips, 'trip')} unrolled into one"
        first = "one trip peeled off, " if trips % 2 else ""
        return f"{first}{counted(trips - trips % 2, 'trip')} unrolled into half as many"

    def _unroll(
        self, loop: Instruction, unroller: Unroller, context: PassContext
    ) -> list[Instruction]:
        """Unroll a loop; returns the instructions of a trip that is to run before it."""
        context.count("loops unrolled")
        body, condition = loop.called
        if len(body.callers) > 1:
            loop.set_called((clone_to_change(body), condition))
        trips = loop_trips(loop).computed or 0
        if self.options.unroll_strategy == "full-unroll":
            unroller.repeat(loop, "full_unroll_clone", trips, to_one=True)
            restate(loop, 1)
            return []
        peeled: list[Instruction] = []
        if trips % 2:
            context.count("trips peeled off")
            peeled = unroller.peel(loop, "peeled_double_buffer")
        unroller.repeat(loop, "double_buffer_clone", 2)
        restate(loop, trips // 2, skipped=trips % 2, factor=2)
        return peeled
