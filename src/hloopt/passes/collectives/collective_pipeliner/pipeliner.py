"""The pass: loops are found, what can be moved is matched, the loops are rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from hloopt.analysis.calls import loops_with_body
from hloopt.ir.attributes.backend_config import with_collective_flag
from hloopt.ir.clone import clone_computation, own_computations
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.ir.ordering import computation_post_order, post_order, repair_schedule
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.collectives.collective_pipeliner.backward import BackwardPipelining
from hloopt.passes.collectives.collective_pipeliner.chains import backward_chains
from hloopt.passes.collectives.collective_pipeliner.copies import Copier
from hloopt.passes.collectives.collective_pipeliner.counted_loop import (
    CountedLoop,
    NotPipelined,
    counted_loop,
)
from hloopt.passes.collectives.collective_pipeliner.forward import ForwardPipelining
from hloopt.passes.collectives.collective_pipeliner.markers import remove_marks
from hloopt.passes.collectives.collective_pipeliner.matching import forward_moves
from hloopt.passes.collectives.collective_pipeliner.options import OPTION_GROUPS, PipelinerOptions
from hloopt.passes.collectives.collective_pipeliner.sink import Sinking
from hloopt.passes.collectives.collective_pipeliner.unconsidered import unconsidered
from hloopt.passes.simplification.dce import DeadCodeElimination


@register(
    "collective-pipeliner",
    preserves="bits",
    xla=XlaPass("CollectivePipeliner", "xla/service/collective_pipeliner.h"),
)
class CollectivePipeliner(ModulePass):
    """Move collectives of counted while loops to other trips, so that other work can hide them.

    Forward, a trip finishes what the trip before began: the collective runs on the operand of the
    trip before, and its result, formatted or not, is stored where that trip would have stored it.
    The first trip is peeled off before the loop, the last collective runs after it. Backward, a
    trip begins what the next one needs: the collective, with all that its operand is computed
    from, runs a trip earlier; the last trip is peeled off after the loop. To sink is to stack the
    operands of all trips, and to run the collective once on the stack, after the loop.

    A loop is left alone unless its counter and its trip count, two at least, are proved from its
    text; `known_trip_count` is not believed. With `trip_analysis=xla` it is also left alone where
    XLA's pass does not count the trips, or does not follow the index of a store. Remarks say of
    each collective in a loop what became of it, or which condition failed; with `should_process`,
    of what it picks. Bodies are changed in place: what is not moved keeps its name. A changed loop
    stands last in its computation, and its body in the module, where XLA puts the new ones that it
    makes. The defaults are the settings of XLA:GPU.

    Where XLA's pass is unsafe, this one is not. The trips of `<=` and `>=` loops are counted right.
    What is stored in a buffer that becomes another element of the state stays, as does what a
    later round would store over what an earlier one moved. Slices that no trip stores keep what
    they held when others are sunk. What cannot run for all trips at once is not sunk; there XLA
    ends with an error. The counter may be any element of the state, a loop that is the root of
    its computation results in what it did, and dead collectives do not stay behind. Near-linear in
    the module's size.
    """

    Options: ClassVar[type[PipelinerOptions]] = PipelinerOptions

    option_groups = OPTION_GROUPS
    options: PipelinerOptions

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        pipelining = _Pipelining(module, self.options, context)
        loops = [loop for body in module.computations.values() for loop in loops_with_body(body)]
        if context.wants_remarks:
            pipelining.note_unconsidered(loops)
        loops = _inner_first([loop for loop in loops if pipelining.has_candidates(loop)])
        if self.options.pipelining_direction == "forward-sink":
            pipelining.sink(loops)
        else:
            pipelining.move(loops)
        if self.options.last_run:
            context.count("marks removed", remove_marks(module, context))
        pipelining.report()
        if module.version == before:
            return False
        DeadCodeElimination().run(module, PassContext(wants_remarks=False))
        repair_schedule(c for c in pipelining.changed if c.name in module.computations)
        return True


def _rename(loop: Instruction, kept: Iterable[Instruction]) -> None:
    """Name a loop as a new one, and what is in its body as copies. O(slots)."""
    names = loop.parent.module.instruction_names
    loop.take_name(names.unique(Opcode.WHILE.value))
    for instruction in kept:
        instruction.take_name(names.unique(instruction.name))


def _inner_first(loops: list[Instruction]) -> list[Instruction]:
    """Loops in XLA's order, each after those in its body. O(instructions) if there are several."""
    if len(loops) < 2:
        return loops
    parents = dict.fromkeys(loop.parent for loop in loops)
    if len(parents) > 1:
        order = computation_post_order(loops[0].parent.module)
        parents = dict.fromkeys(c for c in order if c in parents)
    wanted = set(loops)
    return [i for parent in parents for i in post_order(parent) if i in wanted]


class _Change(Protocol):
    """The rewrite of one loop."""

    def apply(self) -> list[Instruction]:
        """Rewrite it; returns all that was moved, with its copies."""
        ...


@dataclass(slots=True)
class _Plan:
    """The plan for one loop."""

    loop: CountedLoop
    moved: list[Instruction]
    """The candidates that are moved."""
    change: _Change
    version: int
    """The version of the body that was looked at."""


class _Pipelining:
    """One run of the pass on a module."""

    def __init__(self, module: Module, options: PipelinerOptions, context: PassContext) -> None:
        self._module = module
        self._context = context
        self._options = options
        self._copier = Copier(module, unique_channel_id=options.unique_channel_id)
        self._processes = options.processes
        self._missed: dict[Instruction, str] = {}
        self._moved: dict[Instruction, Instruction] = {}
        """The moved instructions, with their loop."""
        self.changed: dict[Computation, None] = {}
        """The computations that loops were changed in."""
        self._waits_for_last_round: dict[Instruction, None] = {}

    def has_candidates(self, loop: Instruction) -> bool:
        """Whether there is anything to move in a loop. O(body)."""
        return any(map(self._processes, loop.called[0].instructions))

    def sink(self, loops: Sequence[Instruction]) -> None:
        """Move out of loops round by round, what is large in the last."""
        while loops:
            loops = self.move(loops)
        waiting, self._waits_for_last_round = self._waits_for_last_round, {}
        if waiting:
            self._options = replace(self._options, delay_sinking_large_collectives=False)
            self.move(list(waiting))

    def move(self, loops: Iterable[Instruction]) -> list[Instruction]:
        """Move what can be moved in these loops; returns those that were changed.

        All are looked at before the first is changed: what was moved out of an inner loop is not
        moved once more.
        """
        plans = [plan for loop in loops if (plan := self._plan_of(loop))]
        changed: list[Instruction] = []
        for plan in plans:
            if self._context.is_at_limit:
                break
            before = self._module.version
            current = self._up_to_date(plan)
            if current is not None:
                self._apply(current)
                changed.append(current.loop.instruction)
            if self._module.version != before:
                self._context.apply(plan.loop.instruction, "pipelined", remark=False)
        return changed

    def note_unconsidered(self, loops: Iterable[Instruction]) -> None:
        """Note what stays whatever becomes of its loop, for remarks."""
        self._missed |= unconsidered(loops, self._options)

    def report(self) -> None:
        """Remarks on all that was to be moved, and how much was."""
        direction = self._options.pipelining_direction
        level = self._options.level_to_operate_on
        what = {
            "forward": f"pipelined forward, level {level}: a trip later in",
            "backward": "pipelined backward: a trip earlier in",
            "forward-sink": "sunk: once for all trips, after",
        }[direction]
        for instruction, loop in self._moved.items():
            self._context.applied(instruction, f"{what} %{loop.name}")
        for instruction, reason in self._missed.items():
            if instruction not in self._moved:
                self._context.missed(instruction, f"not pipelined: {reason}")
        if self._moved:
            self._context.count(f"pipelined {direction}", len(self._moved))

    # -- plans ------------------------------------------------------------------------------

    def _plan_of(self, loop: Instruction) -> _Plan | None:
        candidates = [i for i in loop.called[0].instructions if self._processes(i)]
        if not candidates:
            return None
        return self._plan_for(loop, candidates)

    def _plan_for(self, instruction: Instruction, candidates: list[Instruction]) -> _Plan | None:
        """The plan for a loop; None, with the reasons noted, where nothing is moved."""
        try:
            loop = counted_loop(instruction, as_xla=self._options.trip_analysis == "xla")
        except NotPipelined as reason:
            self._missed.update(dict.fromkeys(candidates, str(reason)))
            return None
        options = self._options
        chosen: list[Instruction] = []
        for candidate in sorted(candidates, key=loop.position.__getitem__):
            if options.pipelining_direction == "forward-sink" and options.is_delayed(candidate):
                self._waits_for_last_round[loop.instruction] = None
            else:
                chosen.append(candidate)
        missed: dict[Instruction, str] = {}
        change = self._change_of(loop, chosen, missed)
        self._missed |= missed
        moved = [candidate for candidate in chosen if candidate not in missed]
        return _Plan(loop, moved, change, loop.body.version) if moved else None

    def _change_of(
        self, loop: CountedLoop, chosen: Sequence[Instruction], missed: dict[Instruction, str]
    ) -> _Change:
        """The rewrite of those that can be moved; adds to `missed` why the others cannot."""
        options, copier = self._options, self._copier
        if options.pipelining_direction == "backward":
            chains = backward_chains(loop, chosen, options, missed)
            return BackwardPipelining(loop, chains, options, copier)
        moves = forward_moves(loop, chosen, options, missed)
        if options.pipelining_direction == "forward-sink":
            return Sinking(loop, moves, options, copier)
        return ForwardPipelining(loop, moves, options, copier)

    def _up_to_date(self, plan: _Plan) -> _Plan | None:
        """The plan, after other loops were changed, for a body that nothing else calls.

        None where what the other loops became prevents it.
        """
        loop, moved = plan.loop.instruction, plan.moved
        shared = [c for c in loop.called if sum(c.callers.values()) > 1]
        if shared:
            copies: dict[Instruction, Instruction] = {}
            called = list(loop.called)
            for computation in shared:
                called[called.index(computation)], made = clone_computation(computation)
                copies |= made
            loop.set_called(tuple(called))
            for copy in copies.values():
                own_computations(copy, loops=True)
            moved = [copies.get(instruction, instruction) for instruction in moved]
        elif loop.called[0].version == plan.version:
            return plan
        return self._plan_for(loop, moved)

    # -- changes ----------------------------------------------------------------------------

    def _apply(self, plan: _Plan) -> None:
        options, loop = self._options, plan.loop
        self.changed |= dict.fromkeys((loop.caller, loop.body, loop.condition))
        self._moved.update(dict.fromkeys(plan.moved, loop.instruction))
        given = list(loop.body.instructions)
        moved_now = plan.change.apply()
        if not options.keep_names:
            _rename(loop.instruction, (i for i in given if i in loop.body))
        loop.caller.module.move_to_end((loop.body, loop.condition))
        for moved in moved_now:
            if options.mark_pipelined and moved.opcode in COLLECTIVES:
                moved.set_attribute("backend_config", with_collective_flag(moved, "is_pipelined"))
            if options.postprocess_pipelined_ops is not None:
                options.postprocess_pipelined_ops(moved)
        if options.postprocess_transformed_while_loop is not None:
            options.postprocess_transformed_while_loop(loop.instruction)
