"""The program that decisions begin with, the order that comes last, and gains of decisions."""

from __future__ import annotations

import os
import time

from hloopt.diagnostics import counted
from hloopt.ir.clone import clone_module
from hloopt.ir.module import Module
from hloopt.pass_framework.base import PassContext
from hloopt.passes.overlap.decisions import Draft, run_passes
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.search import OverlapSearch
from hloopt.search_budget import SearchBudget, SearchLimits
from hloopt.text import parse_module, print_module

_TENTHS = 7
"""The tenths of the budget for all decisions but the order, which comes last."""
_MOVES_PER_TRIAL = 500
"""How many changes of an order are tried where `iterations` allows one trial of decisions."""
_ORDERED = 3
"""For how many sets of decisions an order is searched."""
_ORDERED_TO_FIT = 6
"""For how many where memory goes before time, each for as long as otherwise for all: what is
recomputed depends on the order."""
_BESIDE = 1.3
"""The time of a trial to that of judging alone: decisions have to be made first."""
_LONG = 20
"""How often a trial has to fit in the budget for its time to be measured again."""
_LEAST = 2
"""The iterations of the shortest search that decides anything."""


def given_program(module: Module, judge: Judge) -> Judged:
    """The module as it is given, judged, with the draft that decisions begin with.

    The draft is read from its text, as it is by other processes that judge decisions.
    """
    draft, _ = clone_module(module)
    run_passes(draft, [("synchronize-collectives", {"transfers": True}), "hlo-descheduler"])
    draft = parse_module(print_module(draft))
    if not module.is_scheduled:
        return judge.finish(Draft(draft))
    copy, _ = clone_module(module)
    return judge.judge(Draft(draft), copy)


def for_compiler(draft: Draft) -> Module:
    """The program for XLA to go on from behind its combiners.

    It makes collectives asynchronous there; transfers to and from the host are by then. What loops
    that were peeled call has to be called once, as copy insertion wants it.
    """
    module, _ = clone_module(draft.module)
    run_passes(module, ["host-memory-transfer-asyncifier", "flatten-call-graph"])
    return module


def first_trial(given: Judged, judge: Judge, *, to_fit: bool = False) -> tuple[Judged, int]:
    """The program without decisions as XLA:GPU runs it, and the number of iterations to search for.

    Where the options give a time, it is the number that is likely to fit in it: the search then
    goes by that number alone, so that it can be repeated. `to_fit`: memory goes before time.
    """
    options = judge.options
    seconds = float(options.budget)
    for _ in range(2):  # what is imported for the first time is not counted
        begin = time.perf_counter()
        judged = judge.finish(given.draft)
        seconds = min(seconds, time.perf_counter() - begin)
        if options.iterations is not None:
            return judged, options.iterations
        if seconds * _LONG > options.budget:
            break
    jobs = min(options.jobs, os.cpu_count() or 1)
    share = (_TENTHS / jobs + _tenths_of_orders(to_fit)) / 10  # orders by one process
    trials = options.budget / (seconds * _BESIDE * share) if seconds else 0
    return judged, max(int(trials), _LEAST) if options.budget else 0


def budget_of_decisions(iterations: int, context: PassContext) -> SearchBudget:
    """The part of the iterations for decisions, in sets of them."""
    limits = SearchLimits(iterations=iterations * _TENTHS // 10)
    return SearchBudget("decisions", limits, context.on_progress)


def _tenths_of_orders(to_fit: bool) -> int:
    """The tenths of the budget for orders, more than are left where memory goes before time."""
    return (10 - _TENTHS) * (_ORDERED_TO_FIT if to_fit else 1)


def with_best_order(search: OverlapSearch, iterations: int) -> Judged:
    """The best program once the order of those with the best decisions is searched, too."""
    best = search.best
    to_fit = search.goal.may_be_longer
    number = _ORDERED_TO_FIT if to_fit else _ORDERED
    trials = iterations * _tenths_of_orders(to_fit)
    order = {
        "iterations": trials * _MOVES_PER_TRIAL // (10 * number),
        "seed": search.judge.options.seed,
        "memory_limit": search.goal.limit,
    }
    for judged in search.shortest(number):
        ordered = search.judge.finish(judged.draft, order)
        if search.goal.is_better(ordered, best):
            best = ordered
    return best


def gains(given: Judged, best: Judged, judge: Judge) -> list[str]:
    """For each decision, in their order, the time and the bytes that it made the difference."""
    steps = [judge.finish(draft) for draft in best.draft.prefixes()]
    described = [decision.what for decision in best.decisions]
    pairs = [("schedule as XLA:GPU", given, steps[0])]
    pairs += zip(described, steps[:-1], steps[1:], strict=True)
    pairs.append(("search the order", steps[-1], best))
    return [
        f"{what}: {milliseconds(before.seconds)} to {milliseconds(after.seconds)}, "
        f"{_difference(after.allocated - before.allocated)}"
        for what, before, after in pairs
        if (before.seconds, before.allocated) != (after.seconds, after.allocated)
    ]


def _difference(size: int) -> str:
    return f"{'-' if size < 0 else '+'}{counted(abs(size), 'byte')}"


def milliseconds(seconds: float) -> str:
    """Four digits, or all before the point: `0.2033 ms`, `49,630 ms`."""
    whole = round(seconds * 1e3)
    amount = f"{whole:,}" if whole >= _FIVE_DIGITS else f"{seconds * 1e3:,.4g}"
    return amount + " ms"


_FIVE_DIGITS = 10_000
