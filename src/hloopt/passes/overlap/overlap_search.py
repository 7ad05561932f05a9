"""Deciding what is combined, split, pipelined and unrolled, and in which order it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from hloopt.collector import collector_paused
from hloopt.diagnostics import HloError, PipelineError
from hloopt.ir.clone import clone_module
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.pass_framework.base import ModulePass, PassContext, register
from hloopt.passes.overlap.decisions import Draft, run_passes
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.passes.overlap.search import OverlapSearch, is_better
from hloopt.search_budget import SearchBudget

_EVERY_OPCODE = tuple(Opcode)
_ORDER_SHARE = 0.5
"""The part of the budget for the order, once all else is decided."""
_MOVES_PER_TRIAL = 2000
"""How many moves of the search for an order stand for one trial of decisions."""


@register("overlap-search", preserves="rounding")
class OverlapSearchPass(ModulePass):
    """Decide together how collectives run, so that a step is as short as can be.

    Decided are: which collectives are combined, and which are taken apart; which all-reduces become
    a reduce-scatter and an all-gather; what is pipelined across the trips of loops, in which
    direction; which loops make two trips in one; and the order of all. Each decision is a pass of
    its own with options. A program with some decisions is made asynchronous, gets the copies that
    XLA:GPU inserts, and is scheduled; then its time is that of the simulator, its memory what
    buffer assignment finds. What makes it shorter and fits stays.

    A module with a schedule comes back with one, one without as a module that XLA can go on from:
    collectives synchronous, before copy insertion. The result is never longer than the module as
    it was given, and never needs more memory than that or `memory_limit`. With `iterations` it
    depends on the module, the options and the seed alone. Each trial is near-linear in the module.
    """

    Options: ClassVar[type[OverlapOptions]] = OverlapOptions
    takes_target = True
    options: OverlapOptions

    def run(self, module: Module, context: PassContext) -> bool:
        if self.options.target is None:
            raise PipelineError(
                "overlap-search needs a target, whose times it goes by",
                help="give target=h100_sxm, or another of `hloopt targets`",
            )
        if context.is_at_limit:
            return False
        with collector_paused():
            try:
                return self._search(module, context)
            except PipelineError:
                raise
            except HloError as error:
                raise PipelineError(error.message, help=error.help, code=error.code) from error

    def _search(self, module: Module, context: PassContext) -> bool:
        options = self.options
        judge = Judge(options)
        given = self._given(module, judge)
        limit = options.memory_limit or given.peak
        search = OverlapSearch(judge, limit, judge.finish(given.draft))
        budget = SearchBudget("decisions", _part(options, 1 - _ORDER_SHARE), context.on_progress)
        search.run(budget)
        best = search.best
        if "order" in options.decisions:
            moves = _MOVES_PER_TRIAL * max(budget.taken, 1)
            ordered = judge.finish(best.draft, moves=moves)
            if is_better(ordered, best, limit):
                best = ordered
        context.count("decisions tried", budget.taken)
        if not is_better(best, given, limit):
            context.missed(module.entry.root, _nothing_found(given, budget.taken))
            return False
        return self._adopt(module, given, best, context)

    def _given(self, module: Module, judge: Judge) -> Judged:
        """The module as it is given, judged, with the draft that decisions begin with."""
        copy, _ = clone_module(module)
        if not module.is_scheduled:
            return judge.finish(Draft(copy))
        draft, _ = clone_module(module)
        run_passes(
            draft,
            [
                ("convert-async-collectives-to-sync", {"nop_opcodes": _EVERY_OPCODE}),
                "hlo-descheduler",
            ],
        )
        return judge.judge(Draft(draft), copy)

    def _adopt(self, module: Module, given: Judged, best: Judged, context: PassContext) -> bool:
        taken = best.module if module.is_scheduled else best.draft.module
        if not module.is_scheduled and not best.decisions:
            return False
        if not context.apply(module.entry.root, _outcome(given, best)):
            return False
        for decision in best.decisions:
            context.count(f"decisions to {decision.family}")
            context.analysis(module.entry.root, decision.what)
        module.become(taken)
        return True


def _part(options: OverlapOptions, share: float) -> OverlapOptions:
    iterations = options.iterations
    return replace(
        options,
        budget=type(options.budget)(options.budget * share),
        iterations=None if iterations is None else max(int(iterations * share), 1),
    )


def _outcome(given: Judged, best: Judged) -> str:
    return (
        f"a step takes {_ms(best.seconds)} instead of {_ms(given.seconds)}, "
        f"{_ms(best.exposed)} instead of {_ms(given.exposed)} of them waiting, and needs "
        f"{best.peak:,} bytes instead of {given.peak:,}"
    )


def _nothing_found(given: Judged, tried: int) -> str:
    return f"no decisions were found that make a step shorter than {_ms(given.seconds)}: {tried:,} tried"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.4g} ms"
