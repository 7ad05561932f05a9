"""The program that decisions begin with, the order that comes last, and gains of decisions."""

from __future__ import annotations

from typing import Any

from hloopt.diagnostics import counted
from hloopt.ir.clone import clone_module
from hloopt.ir.module import Module
from hloopt.options import Seconds
from hloopt.passes.overlap.decisions import Draft, run_passes
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.options import OverlapOptions
from hloopt.passes.overlap.search import OverlapSearch
from hloopt.search_budget import SearchLimits

SHARE_OF_DECISIONS = 0.7
"""The part of the budget for all decisions but the order, which comes last."""
_MOVES_PER_TRIAL = 500
"""How many changes of an order are tried where `iterations` allows one trial of decisions."""
_ORDERED = 3
"""For how many sets of decisions an order is searched."""


def given_program(module: Module, judge: Judge) -> Judged:
    """The module as it is given, judged, with the draft that decisions begin with."""
    draft, _ = clone_module(module)
    run_passes(draft, ["synchronize-collectives", "hlo-descheduler"])
    if not module.is_scheduled:
        return judge.finish(Draft(draft))
    copy, _ = clone_module(module)
    return judge.judge(Draft(draft), copy)


def limits_of_decisions(options: OverlapOptions) -> SearchLimits:
    """The part of the budget for decisions."""
    return SearchLimits(**_part(options, SHARE_OF_DECISIONS))


def _part(options: OverlapOptions, share: float, factor: int = 1) -> dict[str, Any]:
    """A share of the budget, with so many iterations for one, as options of a search."""
    iterations = options.iterations
    return {
        "budget": Seconds(options.budget * share),
        "iterations": None if iterations is None else int(iterations * share * factor),
        "seed": options.seed,
    }


def with_best_order(search: OverlapSearch) -> Judged:
    """The best program once the order of those with the best decisions is searched, too."""
    best = search.best
    share = (1 - SHARE_OF_DECISIONS) / _ORDERED
    order = _part(search.judge.options, share, _MOVES_PER_TRIAL)
    for judged in search.shortest(_ORDERED):
        ordered = search.judge.finish(judged.draft, {**order, "memory_limit": search.goal.limit})
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
    return f"{seconds * 1e3:,.4g} ms"
