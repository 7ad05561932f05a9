"""Results of searches: the best order of small programs, and the way to those of larger ones."""

from __future__ import annotations

from typing import Any

import pytest
from tests.scheduling.asynchronous_programs import random_program
from tests.scheduling.programs import scheduled
from tests.scheduling.search.exact.small_problems import all_orders
from tests.scheduling.search.test_moves import usages
from tests.scheduling.test_search import figures, problems_of, scheduling_of

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.scheduling.search.problem import TICKS, Problem
from hloopt.scheduling.search.walk import Walk
from hloopt.scheduling.search_options import SearchOptions
from hloopt.text import parse_module

# -- small programs --------------------------------------------------------------------------------

WORK = "f { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }"


def small(uses_first: str, hidden_by: str) -> str:
    """Two gathers, of which the second sends `uses_first`, and work on `hidden_by`."""
    gather = "all-gather-start({}), replica_groups={{}}, dimensions={{0}}".format
    return scheduled(
        f"""p = f32[8] parameter(0)
  a = f32[8] fusion(p), kind=kLoop, calls=f
  s = (f32[8], f32[16]) {gather("p")}
  d = f32[16] all-gather-done(s)
  c = f32[8] slice(d), slice={{[0:8]}}
  t = (f32[8], f32[16]) {gather(uses_first)}
  e = f32[16] all-gather-done(t)
  w = f32[8] fusion({hidden_by}), kind=kOutput, calls=g
  v = f32[8] fusion(a), kind=kOutput, calls=h
  ROOT r = (f32[16], f32[8], f32[8]) tuple(e, w, v)""",
        "\n".join(WORK.replace("f {", f"{name} {{") for name in "fgh"),
    )


def keeps_limits(problem: Problem, nodes: list[int]) -> bool:
    left = [*problem.left]
    for node in reversed(nodes):
        needs, changes = problem.claims[node] or ((), ())
        if any(needed > left[resource] for resource, needed in needs):
            return False
        for resource, change in changes:
            left[resource] += change
    return max(usages(problem, nodes)) <= problem.memory.limit


def waits(problem: Problem, nodes: list[int]) -> list[int]:
    """The time that the done of each pair waits."""
    time, began, found = 0, {}, [0] * len(problem.starts)
    for node in nodes:
        time += problem.cost[node]
        if node in problem.starts:
            began[node] = time
        elif node in problem.dones:
            pair = problem.dones.index(node)
            hidden = time - began[problem.starts[pair]]
            found[pair] = max(0, problem.latency[pair] - hidden)
            time += found[pair]
    return found


def weighted(problem: Problem, nodes: list[int]) -> int:
    pairs = zip(waits(problem, nodes), problem.weight, strict=True)
    return sum(wait * weight for wait, weight in pairs)


@pytest.mark.parametrize(("uses_first", "hidden_by"), [("c", "p"), ("c", "a"), ("a", "c")])
@pytest.mark.parametrize("limit", [1, 2])
def test_a_walk_finds_the_best_order_of_a_small_program(
    uses_first: str, hidden_by: str, limit: int
) -> None:
    (problem,) = problems_of(small(uses_first, hidden_by), all_gather_overlap_limit=limit)
    orders = [nodes for nodes in all_orders(problem) if keeps_limits(problem, nodes)]
    best = min(weighted(problem, nodes) for nodes in orders)
    walk = Walk(problem, "0")
    for _ in range(400):
        walk.step()
    assert walk.best == best == weighted(problem, walk.best_nodes)
    assert walk.best_nodes in orders
    least = min(sum(waits(problem, nodes)) for nodes in orders)
    assert walk.least_ticks <= least
    assert walk.is_finished == (best <= walk.least_ticks * min(problem.weight))


@pytest.mark.parametrize(
    ("uses_first", "hidden_by", "limit", "least"),
    [
        ("p", "p", 1, 0),  # each hides behind the work that is there, and two at once may not
        ("c", "p", 1, 0),
        ("c", "c", 1, 0),
        ("c", "d2", 1, 4998),
    ],
)
def test_the_bound_is_what_free_work_cannot_hide(
    uses_first: str, hidden_by: str, limit: int, least: int
) -> None:
    """The lacks of operations with resources of their own add up."""
    text = small(uses_first, "c" if hidden_by == "d2" else hidden_by)
    if hidden_by == "d2":  # all work needs the first result, and the second needs all work
        text = text.replace("v = f32[8] fusion(a)", "v = f32[8] fusion(c)")
        text = text.replace("a = f32[8] fusion(p)", "a = f32[8] negate(p)")
    (problem,) = problems_of(text, all_gather_overlap_limit=limit)
    assert Walk(problem, "0").least_ticks // TICKS == least


def test_a_link_carries_one_operation_at_a_time() -> None:
    """The work can hide any one of three operations, and not all of them one after another."""
    gathers = "\n  ".join(
        f"""q{n} = f32[8] negate(p)
  g{n}.s = (f32[8], f32[16]) all-gather-start(q{n}), replica_groups={{}}, dimensions={{0}}
  d{n} = f32[16] all-gather-done(g{n}.s)"""
        for n in range(3)
    )
    text = scheduled(
        f"""p = f32[8] parameter(0)
  {gathers}
  w = f32[8] fusion(p), kind=kOutput, calls=f
  ROOT r = (f32[16], f32[16], f32[16], f32[8]) tuple(d0, d1, d2, w)""",
        WORK,
    )
    (alone,) = problems_of(text)
    (two,) = problems_of(text, all_gather_overlap_limit=2)
    orders = [nodes for nodes in all_orders(alone) if keeps_limits(alone, nodes)]
    least = min(sum(waits(alone, nodes)) for nodes in orders)
    assert 0 < Walk(alone, "0").least_ticks <= least
    assert Walk(alone, "0").least_ticks > 0.99 * least
    assert Walk(two, "0").least_ticks < Walk(alone, "0").least_ticks


# -- larger programs -------------------------------------------------------------------------------

GPU = {"preset": "xla-gpu", "parallel_collective_overlap_limit": 2}
DOWN = {"top_down_scheduling": True}
CHECKED = (25, 50, 100, 200, 400, 800)
WALKS: tuple[tuple[int, dict[str, Any], int, list[int]], ...] = (
    (2, {}, 3967, [18003986, 18001984, 13993980, 8992984, 13993980, 10998988]),
    (8, GPU, 0, [9000992, 7004998, 6002997, 6002997, 6002997, 6001996]),
    (0, GPU, 0, [9001993, 7999992, 7999992, 7997990, 4002999, 3998995]),
    (9, {}, 0, [10004995, 9998989, 9998989, 9998989, 11995984, 9998989]),
    (8, DOWN, 0, [19003985, 19002984, 19002984, 19002984, 19007989, 25010986]),
    (0, DOWN, 4995, [21008988, 21008988, 21008988, 19003985, 20005986, 19004986]),
    (11, {}, 2976, [5990985, 5990985, 3990987, 3990987, 6994988, 6994988]),
)
"""Seed, options, the least that any order waits, and the weighted waiting after so many steps."""


@pytest.mark.parametrize(("seed", "options", "least", "found"), WALKS, ids=str)
def test_a_walk_goes_the_same_way_everywhere(
    seed: int, options: dict[str, Any], least: int, found: list[int]
) -> None:
    """Iterations and seed decide. Whoever changes the search looks whether the figures get better,
    and puts the new ones here."""
    text = random_program(seed, loops=options is not DOWN)
    walk = Walk(problems_of(text, **options)[-1], "0")
    seen = []
    for step in range(1, CHECKED[-1] + 1):
        walk.step()
        if step in CHECKED:
            seen.append(walk.order.timeline.waiting // TICKS)
    assert (walk.least_ticks // TICKS, seen) == (least, found)


@pytest.mark.parametrize("objective", ["makespan", "exposed"])
@pytest.mark.parametrize("seed", [1, 9])
def test_remarks_give_the_figures_of_before_and_after(seed: int, objective: str) -> None:
    """For a computation that waits: what it took and takes, and how much of that is waiting."""
    text = random_program(seed)
    plain = scheduling_of(text)
    before = dict(zip((c.name for c in plain.computations()), figures(plain), strict=True))
    module, context = parse_module(text), PassContext("latency-hiding-scheduler")
    search: dict[str, Any] = {"iterations": 300, "objective": objective}
    create_pass("latency-hiding-scheduler", {"search": search}).run(module, context)
    found = scheduling_of(text, search=SearchOptions(**search))
    after = dict(zip((c.name for c in found.computations()), figures(found), strict=True))
    remarks = {r.instruction: r.reason for r in context.remarks if "no order" in r.reason}
    for name, (cycles, wasted) in before.items():
        reason = remarks.pop(plain.module.computations[name].root.name, "")
        now, waits = after[name]
        if (now, waits) == (cycles, wasted):
            assert not reason or f"no order of %{name} was found that takes less" in reason
            continue
        assert reason.startswith(
            f"%{name} takes {now:,.12g} cycles instead of {cycles:,.12g}, {waits:,.12g} instead "
            f"of {wasted:,.12g} of them waiting for collectives; no order takes less than "
        )
    assert not remarks
    assert context.statistics["orders tried"] <= 300
