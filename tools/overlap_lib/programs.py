"""Steps decided from just before XLA's combiners on, and finished by XLA's own passes."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hloopt.ir import Module
from hloopt.ir.clone import clone_module
from hloopt.passes.overlap.decisions import Draft, run_passes
from hloopt.passes.overlap.judging import Judge, Judged
from hloopt.passes.overlap.options import FAMILIES, OverlapOptions
from hloopt.passes.overlap.outcomes import for_compiler
from hloopt.passes.overlap.search import Goal, OverlapSearch
from hloopt.search_budget import SearchBudget
from hloopt.text import parse_module, print_module
from overlap_lib.compiler import Failed, Finished, XlaGpu
from overlap_lib.rows import Row, allowed_iterations
from overlap_lib.steps import PAGE, TARGET, Step

_PIPELINED = tuple(
    f"--xla_gpu_enable_pipelined_{what}=true"
    for what in ("all_reduce", "all_gather", "reduce_scatter", "host_offloading")
)
_THRESHOLD = 30 << 20
"""Bytes up to which XLA combines by default."""
_SHARES = (0.1, 10)
_KINDS = ("all_reduce", "all_gather", "reduce_scatter", "collective_permute")
_FINISHED = 5
"""How many of the shortest programs of a search XLA finishes."""
_ORDERED = 2
"""For so many of those an order is searched that is no worse than XLA's."""
_BEGINNINGS = (None, "dfs")
"""Algorithms of the memory scheduler for the order that the search begins with; None: XLA's."""
_NEAR = 1.02
"""How far above XLA's default step a program may be in memory for its order to be searched."""
_MOVES_PER_TRIAL = 50


@dataclass(slots=True)
class Contest:
    """The best step so far that is in no way worse than XLA's default one."""

    default: Step
    best: Step
    decisions: int = 0

    def offer(self, step: Step, decisions: int) -> None:
        if step.is_no_worse(self.default) and step.total < self.best.total:
            self.best, self.decisions = step, decisions


@dataclass(frozen=True, slots=True)
class Made:
    """A program as XLA finished it, with so many decisions of ours."""

    finished: Finished
    decisions: int


def decided(name: str, text: str, gpu: XlaGpu, iterations: int, seed: int) -> Row:
    """The step of a program as it was given to XLA, by XLA's decisions and by ours.

    Ours are made just before XLA's combiners, of what XLA brings there with default flags and with
    those that pipeline collectives. XLA finishes the shortest, by our models; the orders of those
    are searched, the shortest by XLA first, until two are no worse than its own. Raises Failed.
    """
    starts = [gpu.before_combiners(text), gpu.before_combiners(text, _PIPELINED)]
    theirs = [gpu.combined(start) for start in starts]
    theirs += [gpu.combined(starts[0], _thresholds(share)) for share in _SHARES]
    default = theirs[0].step
    best = min((each.step for each in theirs), key=lambda step: step.total)
    begin = time.process_time()
    contest = Contest(default, default)
    made = [Made(each, 0) for each in theirs]
    tried = 0
    different = tuple(dict.fromkeys(starts))
    for start in different:
        module = parse_module(start)
        run_passes(module, [("synchronize-collectives", {"transfers": True})])
        trials = allowed_iterations(module, iterations // len(different))
        search, taken = _searched(module, theirs[0], trials, seed)
        tried += taken
        made += _finished(search.shortest(_FINISHED), gpu)
    for each in made:
        contest.offer(each.finished.step, each.decisions)
    limit = default.allocated * _NEAR
    near = [each for each in made if each.finished.step.allocated <= limit]
    near.sort(key=lambda each: (each.finished.step.total, each.decisions))
    ordered = 0
    for each in _different(near):
        steps = list(_reordered(each.finished, default, gpu, iterations, seed))
        for step in steps:
            contest.offer(step, each.decisions)
        ordered += any(step.is_no_worse(default) for step in steps)
        if ordered == _ORDERED:
            break
    seconds = time.process_time() - begin
    return Row(name, default, best, contest.best, contest.decisions, tried, seconds)


def _different(made: Sequence[Made]) -> list[Made]:
    """The first of those that come to equal steps: different decisions may make one program."""
    first: dict[Step, Made] = {}
    for each in made:
        first.setdefault(each.finished.step, each)
    return list(first.values())


def _thresholds(share: float) -> list[str]:
    size = int(_THRESHOLD * share)
    return [f"--xla_gpu_{kind}_combine_threshold_bytes={size}" for kind in _KINDS]


def _searched(
    start: Module, default: Finished, iterations: int, seed: int
) -> tuple[OverlapSearch, int]:
    """A search for decisions, none of whose steps may be worse than XLA's default one, and how many
    sets of them it tried."""
    families = tuple(family for family in FAMILIES if family != "order")
    options = OverlapOptions(target=TARGET, iterations=iterations, seed=seed, decisions=families)
    judge = Judge(options)
    theirs, _ = clone_module(default.after_scheduler)
    given = judge.judge(Draft(start), theirs)
    search = OverlapSearch(judge, Goal(_in_pages(default.step), given), judge.finish(Draft(start)))
    budget = SearchBudget("decisions", options, None)
    search.run(budget)
    return search, budget.taken


def _finished(programs: Sequence[Judged], gpu: XlaGpu) -> Iterator[Made]:
    """Programs that XLA finishes; those that it refuses are left out."""
    for judged in programs:
        with contextlib.suppress(Failed):
            made = gpu.finished(print_module(for_compiler(judged.draft)))
            yield Made(made, len(judged.decisions))


def _reordered(
    program: Finished, default: Step, gpu: XlaGpu, iterations: int, seed: int
) -> Iterator[Step]:
    """Steps in the best orders that are found, from several orders on."""
    for algorithm in _BEGINNINGS:
        module, _ = clone_module(program.before_scheduler)
        if algorithm is not None:
            options = {"preset": "xla-gpu", "algorithm": algorithm}
            run_passes(module, [("hlo-memory-scheduler", options)])
        search = {
            "iterations": iterations * _MOVES_PER_TRIAL,
            "seed": seed,
            "memory_limit": _in_pages(default),
        }
        scheduler = {"preset": "xla-gpu", "target": TARGET, "search": search}
        run_passes(module, [("latency-hiding-scheduler", scheduler)])
        with contextlib.suppress(Failed):
            yield gpu.forced(module)


def _in_pages(step: Step) -> int:
    return -(-step.allocated // PAGE) * PAGE
