"""Deciding what is combined, split, pipelined and unrolled, and in which order it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from hloopt.diagnostics import counted
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.pass_framework.base import PassContext, register
from hloopt.passes.async_ops.host_transfers import starts_transfer
from hloopt.passes.overlap.ahead import judging_ahead
from hloopt.passes.overlap.deciding import DecidingPass
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.passes.overlap.outcomes import (
    budget_of_decisions,
    first_trial,
    for_compiler,
    given_program,
    milliseconds,
    with_best_order,
)
from hloopt.passes.overlap.search import Goal, OverlapSearch
from hloopt.passes.overlap.sites import is_site

_PAGE = 2 << 20
"""Bytes: device memory is allocated in pages of this size."""


@register("overlap-search", preserves="rounding")
class OverlapSearchPass(DecidingPass):
    """Decide together how collectives run, so that a step is as short as can be.

    Decided are: which collectives are combined, and which are taken apart; which all-reduces become
    a reduce-scatter and an all-gather; which collectives are cut along a dimension, together with
    what makes and uses their values; what is pipelined across the trips of loops, in which
    direction, transfers to and from the host too; which loops make two trips in one; and the order
    of all. Each decision is a pass of its own with options. A program with some decisions is made
    asynchronous, gets the copies that XLA:GPU inserts, and is scheduled; then its time is that of
    the simulator, its memory what buffer assignment finds. What makes it shorter and fits stays.

    A module with a schedule comes back with one, one without as a module that XLA can go on from:
    collectives synchronous, transfers to and from the host asynchronous, without the copies of
    copy-insertion, the order undecided. The result is never longer than the module as it was given:
    not by the model of time, not where its tables are smoothed so that times never fall where sizes
    grow, and not by the times that XLA's scheduler goes by. It never needs more memory than
    `memory_limit`. Remarks tell what each decision bought. With `iterations` it depends on the
    module, the options and the seed alone. Each trial is near-linear in the module.
    """

    Options: ClassVar[type[OverlapOptions]] = OverlapOptions
    options: OverlapOptions

    def is_for(self, module: Module, context: PassContext) -> bool:
        if any(map(_is_site, module.instructions())):
            return True
        context.missed(module.entry.root, "the module has no collectives or transfers to the host")
        return False

    def search(self, module: Module, context: PassContext) -> bool:
        options = self.options
        if not module.is_scheduled:  # an order would be lost
            kinds = tuple(kind for kind in options.decisions if kind != "order")
            options = replace(options, decisions=kinds)
        judge = Judge(options)
        given = given_program(module, judge)
        limit = options.memory_limit
        if limit is None:
            limit = -(-given.allocated // _PAGE) * _PAGE
        goal = Goal(limit, given)
        first, iterations = first_trial(given, judge)
        search = OverlapSearch(judge, goal, first)
        budget = budget_of_decisions(iterations, context)
        with judging_ahead(judge.options, given.draft) as search.ahead:
            search.run(budget)
        search.ahead = None
        best = search.best
        if "order" in options.decisions:
            best = with_best_order(search, iterations)
        context.count("decisions tried", budget.taken)
        context.count("iterations", iterations)
        if unknown := judge.simulated(best.module).unknown_loops:
            context.note(
                f"the trip count of {counted(len(unknown), 'loop')} is not known: taken as one"
            )
        if not goal.is_better(best, given):
            context.missed(module.entry.root, _nothing_found(given, budget.taken))
            return False
        return self._adopt(module, given, best, judge, context)

    def _adopt(
        self, module: Module, given: Judged, best: Judged, judge: Judge, context: PassContext
    ) -> bool:
        if not context.apply(module.entry.root, _outcome(given, best)):
            return False
        self.tell(module, given, best, judge, context)
        module.become(best.module if module.is_scheduled else for_compiler(best.draft))
        return True


def _is_site(instruction: Instruction) -> bool:
    return is_site(instruction) or starts_transfer(instruction)


def _outcome(given: Judged, best: Judged) -> str:
    return (
        f"a step takes {milliseconds(best.seconds)} instead of {milliseconds(given.seconds)}, "
        f"{milliseconds(best.exposed)} instead of {milliseconds(given.exposed)} of it waiting, "
        f"and needs {counted(best.allocated, 'byte')} instead of {given.allocated:,}"
    )


def _nothing_found(given: Judged, tried: int) -> str:
    return (
        f"no decisions were found that make a step shorter than {milliseconds(given.seconds)}: "
        f"{counted(tried, 'set')} tried"
    )
