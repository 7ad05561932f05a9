"""Deciding what is recomputed, kept apart and ordered so that a program fits in memory."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from hloopt.diagnostics import PassRefused, counted
from hloopt.ir.module import Module
from hloopt.memory.backends import GPU
from hloopt.memory.floor import MemoryFloor, memory_floor
from hloopt.pass_framework.base import PassContext, register
from hloopt.passes.overlap.ahead import judging_ahead
from hloopt.passes.overlap.deciding import DecidingPass
from hloopt.passes.overlap.decisions import Draft
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.memory_proposals import offloaded, sunk
from hloopt.passes.overlap.memory_walk import MemoryWalk
from hloopt.passes.overlap.options import MemorySearchOptions
from hloopt.passes.overlap.outcomes import (
    budget_of_decisions,
    first_trial,
    given_program,
    milliseconds,
    with_best_order,
)
from hloopt.passes.overlap.search import Goal, OverlapSearch
from hloopt.targets import load_target


@register("memory-search", preserves="rounding")
class MemorySearchPass(DecidingPass):
    """Make a scheduled program fit in memory, at the least time that it takes longer.

    Decided are, as long as it does not fit: whether slices are transposed in loops in place of the
    arrays before them; which stacks of loops are kept in host memory; what is recomputed, by
    rematerialization with various limits; how collectives run and in which order, by schedulers
    that mind memory. Of all that helps, what costs least time for the bytes that it saves is done
    first. Once the program fits, the decisions of overlap-search make it as short as
    can be within the limit, and those that are no longer needed are undone. Time is that of the
    simulator, memory what buffer assignment finds.

    A program that fits stays as it is, and so does one for which no decisions suffice: a remark
    then says how much the smallest needs that was found, and a lower bound: what its instructions
    need in any order, however often they run, with no array transposed before loops and all stacks
    in host memory. With `iterations` the result depends on the module, the options and the seed
    alone. Each trial is near-linear in the module.
    """

    Options: ClassVar[type[MemorySearchOptions]] = MemorySearchOptions
    options: MemorySearchOptions

    def is_for(self, module: Module, context: PassContext) -> bool:
        if not module.is_scheduled:
            raise PassRefused(
                "the module has no schedule, so nothing is known of its memory",
                help="run hlo-memory-scheduler or latency-hiding-scheduler first",
            )
        return True

    def search(self, module: Module, context: PassContext) -> bool:
        options = self.options
        limit = options.memory_limit
        if limit is None:
            limit = load_target(str(options.target)).memory_size
        # The scheduler minds memory only where a decision says so: that makes steps longer.
        judge = Judge(replace(options, memory_limit=None))
        given = given_program(module, judge)
        if given.allocated <= limit:
            context.missed(module.entry.root, f"it fits: {_needs(given, limit)}")
            return False
        goal = Goal(limit, given, may_be_longer=True)
        _, iterations = first_trial(given, judge, to_fit=True)
        budget = budget_of_decisions(iterations, context)
        search = OverlapSearch(judge, goal, given)
        with judging_ahead(judge.options, given.draft) as search.ahead:
            MemoryWalk(search, options.decisions).run(budget)
            if search.best.allocated <= limit:
                search.run(budget)
        search.ahead = None
        best = search.best
        if "order" in options.decisions:
            best = with_best_order(search, iterations)
        context.count("decisions tried", budget.taken)
        context.count("iterations", iterations)
        if best.allocated > limit:
            context.missed(module.entry.root, _too_large(given, best, limit))
            return False
        return self._adopt(module, given, best, judge, context)

    def _adopt(
        self, module: Module, given: Judged, best: Judged, judge: Judge, context: PassContext
    ) -> bool:
        what = (
            f"it needs {counted(best.allocated, 'byte')} instead of {given.allocated:,}, and a "
            f"step takes {milliseconds(best.seconds)} instead of {milliseconds(given.seconds)}"
        )
        if not context.apply(module.entry.root, what):
            return False
        self.tell(module, given, best, judge, context)
        module.become(best.module)
        return True


def least_memory(draft: Draft) -> MemoryFloor:
    """A lower bound of what a program is allocated, unless instructions are replaced.

    It holds for all orders of its instructions and for any that are computed again, as what an
    instruction reads and gives out stays the same, and whether or not arrays of loops are
    transposed slice by slice and all stacks are in host memory that may be. Near-linear, as
    `memory_floor` is.
    """
    several = [draft]
    for decision in (sunk(), offloaded(())):
        several += [after for each in several if (after := each.after(decision)) is not None]
    floors = (memory_floor(each.module, backend=GPU) for each in several)
    return min(floors, key=lambda floor: floor.size)


def _too_large(given: Judged, best: Judged, limit: int) -> str:
    floor = least_memory(given.draft)
    proved = "does not fit" if floor.size > limit else "would fit"
    return (
        f"no decisions were found by which it fits: {_needs(given, limit)}, the least that was "
        f"found is {best.allocated:,}; its instructions as they are need {floor.size:,} in any "
        "order, with any of them computed again, slices transposed in place of arrays and all "
        f"stacks in host memory, at %{floor.instruction.name}, which {proved}"
    )


def _needs(judged: Judged, limit: int) -> str:
    return f"it needs {counted(judged.allocated, 'byte')}, the limit is {limit:,}"
