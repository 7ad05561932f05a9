"""The search for better schedules: what holds of its results, and of its books."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import pytest
from tests.passes.checked_run import run_checked
from tests.scheduling.asynchronous_programs import random_program

from hloopt.analysis.latency import FixedModel
from hloopt.analysis.latency.statistics import schedule_statistics
from hloopt.diagnostics import PipelineError
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module
from hloopt.ir.attributes.scheduling_annotations import group_of
from hloopt.pass_framework.base import PassContext, Seconds
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.scheduling.latency_hiding_scheduler.schedule_module import schedule_and_report
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.module_scheduling import ModuleScheduling
from hloopt.scheduling.search.check import broken_rule
from hloopt.scheduling.search.module_search import (
    ModuleSearch,
    search_module,
)
from hloopt.scheduling.search.moves import Mover
from hloopt.scheduling.search.order import Order
from hloopt.scheduling.search.problem import TICKS, Problem
from hloopt.scheduling.search.walk import Walk
from hloopt.scheduling.search_options import SearchOptions
from hloopt.scheduling.times import model_of
from hloopt.text import parse_module, print_module

SEEDS = range(12)
CONFIGS: tuple[dict[str, Any], ...] = (
    {},
    {"collective_permute_overlap_limit": 2, "all_reduce_overlap_limit": 2},
    {"preset": "xla-gpu"},
    {"preset": "xla-gpu", "parallel_collective_overlap_limit": 2},
    {
        "preset": "xla-gpu",
        "parallel_collective_overlap_limit": 3,
        "enable_collective_multi_streaming": True,
    },
    {"top_down_scheduling": True},
)


def scheduling_of(text: str, **options: Any) -> ModuleScheduling:
    """A module with the plain schedule."""
    scheduling = ModuleScheduling.of(
        parse_module(text), SchedulerConfig(**options).resolved(), FixedModel()
    )
    schedule_and_report(scheduling, PassContext())
    scheduling.scheduler.life.restart()
    return scheduling


def figures(scheduling: ModuleScheduling) -> list[tuple[float, float]]:
    scheduler = scheduling.scheduler
    tracker, model = scheduler.tracker, scheduler.model
    found = [
        schedule_statistics(list(c.instructions), model, tracker.is_start, tracker.is_done)
        for c in scheduling.computations()
    ]
    return [(statistics.total_cycles, statistics.total_wasted) for statistics in found]


def problems_of(text: str, **options: Any) -> list[Problem]:
    scheduling = scheduling_of(text, **options)
    search = ModuleSearch(scheduling.scheduler, scheduling.computations(), SearchOptions())
    return [s.problem for s in search.searches]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", SEEDS)
def test_results_keep_every_rule_and_are_no_worse(seed: int, config: dict[str, Any]) -> None:
    text = random_program(seed, loops="top_down_scheduling" not in config)
    plain = scheduling_of(text, **config)
    search = SearchOptions(iterations=1500, objective="exposed" if seed % 2 else "makespan")
    found = ModuleScheduling.of(
        parse_module(text), SchedulerConfig(**config, search=search).resolved(), FixedModel()
    )
    context = PassContext()
    schedule_and_report(found, context)
    found.scheduler.life.restart()
    assert found.scheduler.life.peak <= plain.scheduler.life.peak
    for (total, exposed), (plain_total, plain_exposed) in zip(
        figures(found), figures(plain), strict=True
    ):
        assert total <= plain_total
        assert exposed <= plain_exposed
    for computation in found.computations():
        assert broken_rule(computation, found.scheduler) is None
    assert neighbours(plain.module) <= neighbours(found.module)
    assert not [remark for remark in context.remarks if "given up" in remark.reason]


def neighbours(module: Module) -> set[tuple[str, str]]:
    """Members of a scheduling group that stand side by side."""
    return {
        (first.name, second.name)
        for computation in module.computations.values()
        for first, second in pairwise(computation.instructions)
        if group_of(first) is not None and group_of(first) == group_of(second)
    }


@pytest.mark.parametrize("seed", range(4))
def test_results_compute_the_same(seed: int) -> None:
    text = random_program(seed, 20)
    found = run_checked("latency-hiding-scheduler", text, search={"iterations": 1000})
    reference = Reference(parse_module(text), RunSettings(seeds=1))
    assert reference.compare(found) is None


def test_some_results_are_better() -> None:
    saved = 0.0
    for seed in SEEDS:
        text = random_program(seed)
        options = SearchOptions(iterations=3000)
        before = figures(scheduling_of(text))
        after = figures(scheduling_of(text, search=options))
        saved += sum(x[0] - y[0] for x, y in zip(before, after, strict=True))
    assert saved > 10_000


def test_iterations_and_seed_decide_the_result() -> None:
    text = random_program(3)
    results = [
        print_module(
            run_checked("latency-hiding-scheduler", text, search={"iterations": 800, "seed": seed})
        )
        for seed in (0, 0, 1)
    ]
    assert results[0] == results[1]


def test_a_longer_search_goes_on_where_a_shorter_one_ended() -> None:
    (problem, *_) = problems_of(random_program(5))
    short, long = Walk(problem, "a"), Walk(problem, "a")
    found = []
    for step in range(2000):
        long.step()
        if step < 1000:
            short.step()
        found.append(long.best)
    assert found[999] == short.best
    assert found == sorted(found, reverse=True)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("seed", range(6))
def test_the_books_of_an_order_stay_right(seed: int, config: dict[str, Any]) -> None:
    """The books kept up to date move by move say what looking at the whole order does."""
    loops = "top_down_scheduling" not in config
    for problem in problems_of(random_program(seed, loops=loops), **config):
        order, rng = Order(problem), Random(seed)
        mover, count = Mover(order), len(problem.cost)
        for _ in range(300):
            move = mover.shift(rng.randrange(count), rng.randrange(count))
            if move is None or not order.is_allowed(*move):
                continue
            expected = order.timeline.waiting + order.gain(*move)
            order.replace(*move)
            assert order.timeline.waiting == expected
            assert_dependencies_hold(order)
        fresh = Order(problem)
        fresh.replace(0, list(order.nodes))
        assert fresh.timeline.wait == order.timeline.wait == waits_of(order)
        assert fresh.peak() == order.peak() <= problem.memory.limit
        nodes = range(count)
        assert [fresh.usage_below(n) for n in nodes] == [order.usage_below(n) for n in nodes]


def assert_dependencies_hold(order: Order) -> None:
    for node, before in enumerate(order.problem.predecessors):
        assert all(order.position[b] < order.position[node] for b in before)


def waits_of(order: Order) -> list[int]:
    """By pair how long its done waits, by the definition."""
    problem = order.problem
    time, began, waits = 0, {}, [0] * len(problem.starts)
    for node in order.nodes:
        time += problem.cost[node]
        if node in problem.starts:
            began[problem.starts.index(node)] = time
        if node in problem.dones:
            pair = problem.dones.index(node)
            waits[pair] = max(0, problem.latency[pair] - (time - began[pair]))
            time += waits[pair]
    return waits


@pytest.mark.parametrize("seed", range(6))
def test_the_peak_is_that_of_the_scheduler(seed: int) -> None:
    scheduling = scheduling_of(random_program(seed))
    search = ModuleSearch(scheduling.scheduler, scheduling.computations(), SearchOptions())
    for found in search.searches:
        assert Order(found.problem).peak() == found.peak


@pytest.mark.parametrize("seed", range(6))
def test_no_order_waits_less_than_the_bound(seed: int) -> None:
    for problem in problems_of(random_program(seed)):
        walk = Walk(problem, "0")
        for _ in range(1000):
            walk.step()
            assert sum(walk.order.timeline.wait) >= walk.least_ticks


def test_more_memory_is_used_where_it_is_allowed() -> None:
    """Hiding the gather keeps what it makes while the large value is there, too."""
    text = """HloModule m, is_scheduled=true
work { x = f32[4096] parameter(0) ROOT z = f32[4096] negate(x) }
ENTRY e {
  p = f32[64] parameter(0)
  q = f32[] parameter(1)
  large = f32[4096] broadcast(q), dimensions={}
  a = f32[4096] fusion(large), kind=kOutput, calls=work
  b = f32[64] slice(a), slice={[0:64]}
  s = (f32[64], f32[2048]) all-gather-start(p), replica_groups={}, dimensions={0}
  d = f32[2048] all-gather-done(s)
  c = f32[64] slice(d), slice={[0:64]}
  ROOT r = f32[64] add(b, c)
}"""
    plain = scheduling_of(text, memory_limit=1)
    waits: list[float] = []
    for limit in (None, 1 << 20):
        options = SearchOptions(iterations=300, memory_limit=limit)
        search_module(plain.scheduler, plain.computations(), options)
        waits += [exposed for _, exposed in figures(plain)]
    assert waits == [4999.0, 0.0]


def test_hints_are_not_worked_against() -> None:
    hint = ', frontend_attributes={scheduler_hint="force_delay"}'
    text = f"""HloModule m, is_scheduled=true
work {{ x = f32[8] parameter(0) ROOT z = f32[8] negate(x) }}
ENTRY e {{
  p = f32[8] parameter(0)
  h = f32[8] custom-call(p), custom_call_target="f"{hint}
  a = f32[8] fusion(p), kind=kOutput, calls=work
  s = (f32[8], f32[16]) all-gather-start(a), replica_groups={{}}, dimensions={{0}}
  b = f32[8] fusion(h), kind=kLoop, calls=work
  d = f32[16] all-gather-done(s)
  ROOT r = (f32[16], f32[8]) tuple(d, b)
}}"""
    plain = [i.name for i in scheduling_of(text).module.entry.instructions]
    search = SearchOptions(iterations=500)
    found = [i.name for i in scheduling_of(text, search=search).module.entry.instructions]
    assert found.index("h") <= plain.index("h")


def test_remarks_say_what_came_of_it() -> None:
    text = random_program(1)
    created = create_pass("latency-hiding-scheduler", {"search": {"iterations": 2000}})
    context = PassContext()
    created.run(parse_module(text), context)
    assert any(r.kind == "applied" and "no order takes less" in r.reason for r in context.remarks)
    assert context.statistics["orders tried"] <= 2000


def test_a_time_budget_ends_the_search() -> None:
    search = SearchOptions(budget=Seconds(0.05))
    scheduling_of(random_program(2), search=search)
    scheduling_of(random_program(2), search=SearchOptions(budget=Seconds(0)))


@pytest.mark.parametrize("options", [{"iterations": -1}, {"budget": Seconds(-1.0)}])
def test_a_search_has_to_end(options: dict[str, Any]) -> None:
    with pytest.raises(PipelineError, match="has to be 0 or more"):
        SearchOptions(**options)


COPIES = """HloModule m, is_scheduled=true, num_partitions=8
ENTRY e {
  p = f32[1024] parameter(0)
  q = bf16[2048,2048] parameter(1)
  s = (f32[1024], f32[1024], u32[]) copy-start(p)
  d = f32[1024] copy-done(s)
  w = bf16[2048,2048] dot(q, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  n = f32[1024] negate(d)
  ROOT r = (f32[1024], bf16[2048,2048]) tuple(n, w)
}
"""


def test_real_times_are_searched_with_no_constants_among_them() -> None:
    config = SchedulerConfig(preset="xla-gpu", target="h100_sxm").resolved()
    module = parse_module(COPIES)
    scheduling = ModuleScheduling.of(module, config, model_of(config, module))
    schedule_and_report(scheduling, PassContext())
    search = ModuleSearch(scheduling.scheduler, scheduling.computations(), SearchOptions())
    (found,) = search.searches
    (latency,) = found.problem.latency
    assert 0 < latency / TICKS < 1  # 4 KiB, to which XLA's model gives 5000 us
    (start,) = (i for i in module.entry.instructions if i.name == "s")
    assert scheduling.scheduler.model.latency(start, next(iter(start.users))) == 5000
    abstract = SchedulerConfig(preset="xla-gpu").resolved()
    plain = ModuleScheduling.of(module, abstract, model_of(abstract, module))
    schedule_and_report(plain, PassContext())
    (found,) = ModuleSearch(plain.scheduler, plain.computations(), SearchOptions()).searches
    assert found.problem.latency == [5000 * TICKS]
