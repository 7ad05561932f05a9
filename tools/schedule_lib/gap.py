"""How far a searched schedule of a random program is from the best one, as a solver proves it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from hloopt.analysis.latency import GpuFixedModel, LatencyModel
from hloopt.analysis.latency.profile import Profile, ProfileModel
from hloopt.analysis.latency.statistics import schedule_statistics
from hloopt.diagnostics import HloError
from hloopt.ir import Instruction, Module
from hloopt.pass_framework.base import PassContext
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.search.check import broken_rule
from hloopt.scheduling.search.computation_search import ComputationSearch
from hloopt.scheduling.search.exact.clock import Times
from hloopt.scheduling.search.exact.solve import Effort
from hloopt.scheduling.search.module_search import ModuleSearch
from hloopt.scheduling.search.problem import TICKS
from hloopt.scheduling.search_options import SearchOptions
from hloopt.text import parse_module
from schedule_fuzz_lib.generate import program
from schedule_fuzz_lib.judge import schedule_for_memory
from schedule_fuzz_lib.settings import SETTINGS

LEAST_INSTRUCTIONS, MOST_INSTRUCTIONS = 20, 60
_MICROSECONDS = (0.0, 1.0, 2.0, 5.0, 10.0, 50.0, 100.0, 500.0)
_KNOWN = 0.8
"""The share of instructions that a profile has times of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """One computation: times in ticks."""

    number: int
    """Of its program."""
    computation: str
    setting: str
    instructions: int
    operations: int
    plain: int
    """The time of the schedule of the rules."""
    searched: int
    """The time of the best that the search found."""
    solved: int
    """The time of the best that the solver found from there on."""
    proved: int
    """No order takes less."""
    seconds: float
    """Of the solver."""

    @property
    def is_proved(self) -> bool:
        return self.solved == self.proved

    @property
    def gap(self) -> float:
        """The part of the bound by which the searched order is longer."""
        return self.searched / self.proved - 1


def gap_of(seed: int, number: int, iterations: int, seconds: float) -> Gap | None:
    """The gap of the largest fitting computation of a random program that waits; None without one.

    A program is scheduled under one of the settings of the comparison with XLA:GPU's scheduler;
    every second one has times as from a profile. The computation is searched for `iterations`, then
    solved for `seconds`, both in the memory that the plain schedule needs.
    """
    searches = _searches(seed, number)
    fitting = [
        s
        for s in (searches.searches if searches is not None else ())
        if LEAST_INSTRUCTIONS <= len(s.instructions) <= MOST_INSTRUCTIONS and s.walk.waited
    ]
    if searches is None or not fitting:
        return None
    search = max(fitting, key=lambda s: len(s.instructions))
    search.begin_round()
    for _ in range(iterations):
        if search.walk.is_finished:
            break
        search.walk.step()
    fits = partial(_fits, search, searches)
    search.end_round(fits)
    searched = _judged(search, searches)
    begin = time.perf_counter()
    search.solve(Effort(seconds, is_deterministic=False), fits)
    took = time.perf_counter() - begin
    if search.proved is None:
        raise AssertionError(f"program {number} of seed {seed}: the solver finds no order at all")
    return Gap(
        number=number,
        computation=search.computation.name,
        setting=SETTINGS[number % len(SETTINGS)].name,
        instructions=len(search.instructions),
        operations=len(search.problem.starts),
        plain=_ticks(search, search.problem.nodes),
        searched=searched,
        solved=_judged(search, searches),
        proved=search.proved,
        seconds=took,
    )


def _searches(seed: int, number: int) -> ModuleSearch | None:
    """The searches in a program that is scheduled by the rules; None where the scheduler refuses
    it, or finds nothing to do."""
    module = parse_module(program(seed, number).text())
    setting = SETTINGS[number % len(SETTINGS)]
    config = SchedulerConfig(**setting.all_options()).resolved(module)
    try:
        schedule_for_memory(module)
        scheduling = ModuleScheduling.of(module, config, _model(module, seed, number))
        schedule_and_report(scheduling, PassContext())
    except HloError:
        return None
    computations = scheduling.computations()
    if not computations:
        return None
    return ModuleSearch(scheduling.scheduler, computations, SearchOptions())


def _model(module: Module, seed: int, number: int) -> LatencyModel:
    """XLA's constants, or times of most instructions that are drawn. All are whole, so that XLA's
    rounding of the times of starts changes nothing."""
    base = GpuFixedModel()
    if number % 2:
        return base
    dice = Random(f"{seed}:{number}")
    names = [i.name for i in module.instructions() if dice.random() < _KNOWN]
    return ProfileModel(Profile({name: dice.choice(_MICROSECONDS) for name in names}), base)


def _ticks(search: ComputationSearch, nodes: Sequence[int]) -> int:
    return max(Times.of(search.problem, nodes).end)


def _fits(search: ComputationSearch, searches: ModuleSearch, order: Sequence[Instruction]) -> bool:
    """Whether the module needs no more memory than with the plain order.

    An order of a caller may change which buffers begin in what it calls, which the search takes to
    stay as they are.
    """
    return _checked(search, searches, order)[1] <= searches.limit


def _checked(
    search: ComputationSearch, searches: ModuleSearch, order: Sequence[Instruction]
) -> tuple[str | None, int]:
    """The rule that an order breaks, and the memory that the module needs with it."""
    computation, scheduler = search.computation, searches.scheduler
    before = list(computation.instructions)
    computation.reorder(order)
    scheduler.tracker.forget(computation)
    scheduler.life.restart()
    found = broken_rule(computation, scheduler), scheduler.life.peak
    computation.reorder(before)
    scheduler.tracker.forget(computation)
    scheduler.life.restart()
    return found


def _judged(search: ComputationSearch, searches: ModuleSearch) -> int:
    """The ticks that the best order takes, which the simulator confirms.

    Raises AssertionError where the order breaks a rule, needs more memory than the plain one, or
    takes another time in the simulator.
    """
    name, tracker, order = search.computation.name, searches.scheduler.tracker, search.best_order()
    statistics = schedule_statistics(order, search.model, tracker.is_start, tracker.is_done)
    ticks = _ticks(search, search.best_nodes)
    assert statistics.total_cycles * TICKS == ticks, name
    fault, peak = _checked(search, searches, order)
    assert fault is None, f"%{name}: {fault}"
    assert peak <= searches.limit, f"%{name} needs more memory"
    return ticks
