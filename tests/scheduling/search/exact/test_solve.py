"""The solver's orders of small problems are the best of all orders, and every rule decides some."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.scheduling.asynchronous_programs import random_program
from tests.scheduling.search.exact.small_problems import best_value, limits_of, small_problem
from tests.scheduling.test_search import problems_of

from hloopt.scheduling.search.exact.clock import Times
from hloopt.scheduling.search.exact.relations import Relations
from hloopt.scheduling.search.exact.solve import (
    Effort,
    Objective,
    Solution,
    _Question,
    counts_exposed,
    solve,
    value,
)
from hloopt.scheduling.search.order import Order
from hloopt.scheduling.search.problem import Problem

pytest.importorskip("ortools", reason="needs the extra solver")

EFFORT = Effort(30, is_deterministic=True)
HELD_BACK = (121, 142, 143, 166)
"""Problems whose shortest order waits longer for collectives than the plain one."""
SEEDS = (*range(80), *HELD_BACK)
EVERYTHING = 1 << 40


def solved(problem: Problem, objective: Objective = "makespan") -> Solution:
    solution = solve(problem, problem.nodes, objective, limits_of(problem, objective), EFFORT)
    assert solution is not None
    return solution


@pytest.mark.parametrize("objective", ["makespan", "exposed"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_best_of_all_orders_is_found_and_proved(seed: int, objective: Objective) -> None:
    problem = small_problem(seed)
    limits = limits_of(problem, objective)
    solution = solved(problem, objective)
    place = {node: at for at, node in enumerate(solution.nodes)}
    assert sorted(solution.nodes) == sorted(problem.nodes)
    assert all(place[e] < place[n] for n in place for e in problem.predecessors[n])
    assert Order(problem).is_allowed(0, solution.nodes)
    best = best_value(problem, objective, limits)
    assert solution.least == value(problem, solution.nodes, objective) == best


RULES: dict[str, Callable[[Problem], Problem]] = {
    "resources": lambda p: replace(p, left=[EVERYTHING] * len(p.left)),
    "from the end": lambda p: replace(p, bottom_up=not p.bottom_up),
    "claims keep order": lambda p: replace(p, claims_keep_order=False),
    "memory limit": lambda p: replace(p, memory=replace(p.memory, limit=EVERYTHING)),
    "memory of callees": lambda p: replace(p, memory=replace(p.memory, inside=[0] * len(p.nodes))),
    "groups": lambda p: replace(p, follower={}),
    "not later": lambda p: replace(p, not_later=frozenset()),
    "not earlier": lambda p: replace(p, not_earlier=frozenset()),
    "latency": lambda p: replace(p, latency=[0] * len(p.latency)),
}
"""Problems without one rule."""


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_decides_about_the_best_order(rule: str) -> None:
    """So that the test above fails where the solver is not told of one."""
    for seed in SEEDS:
        problem = small_problem(seed)
        without = RULES[rule](problem)
        limits = limits_of(problem, "makespan")
        if best_value(problem, "makespan", limits) != best_value(without, "makespan", limits):
            return
    pytest.fail(f"{rule}: never decides")


@pytest.mark.parametrize("seed", HELD_BACK)
def test_waiting_for_collectives_stays_within_its_limit(seed: int) -> None:
    problem = small_problem(seed)
    limits = limits_of(problem, "makespan")
    found = Times.of(problem, solved(problem).nodes)
    assert found.exposed(problem) <= limits.most_exposed
    free = limits._replace(most_exposed=EVERYTHING)
    assert best_value(problem, "makespan", free) < max(found.end)


def test_the_bound_of_all_orders_is_left_where_no_more_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without time for those that wait no longer for collectives, the order stays."""
    answer = _Question.answer
    problem = small_problem(HELD_BACK[0])
    limits = limits_of(problem, "makespan")
    least = best_value(problem, "makespan", limits._replace(most_exposed=EVERYTHING))
    asked: list[Effort] = []

    def first(question: _Question, effort: Effort) -> Solution | None:
        asked.append(effort)
        return answer(question, effort) if len(asked) == 1 else None

    monkeypatch.setattr(_Question, "answer", first)
    assert solved(problem) == (problem.nodes, least)
    assert 0 <= asked[1].seconds < asked[0].seconds


@pytest.mark.parametrize("objective", ["makespan", "exposed"])
def test_only_waiting_for_collectives_counts_where_there_is_other(objective: Objective) -> None:
    problem = small_problem(0)
    nodes = problem.nodes
    times = Times.of(problem, nodes)
    for exposes, apart in (([True, True], False), ([False, False], False), ([False, True], True)):
        problem = replace(problem, exposes=exposes)
        assert counts_exposed(problem, objective) == (apart and objective == "exposed")
        expected = times.exposed(problem) if counts_exposed(problem, objective) else max(times.end)
        assert value(problem, nodes, objective) == expected


def test_nodes_that_do_not_matter_are_put_in_afterwards() -> None:
    """Nodes without time and claims have no place where memory and pins do not matter."""
    seen = set()
    for seed in SEEDS:
        relations = Relations.of(small_problem(seed))
        problem = relations.problem
        free = {*problem.nodes} - {*relations.placed}
        seen.add(bool(free))
        order = relations.completed(relations.placed)
        place = {node: at for at, node in enumerate(order)}
        assert sorted(order) == sorted(problem.nodes)
        assert all(place[e] < place[n] for n in place for e in problem.predecessors[n])
        assert [n for n in order if n not in free] == relations.placed
        for node in free:
            assert not problem.cost[node]
            assert node not in {*problem.starts, *problem.dones}
            assert problem.claims[node] is None
    assert seen == {False, True}


def test_the_same_question_has_the_same_answer() -> None:
    problem = small_problem(7)
    assert solved(problem) == solved(problem)


def test_times_are_those_of_the_search() -> None:
    for seed in SEEDS:
        problem = small_problem(seed)
        times, order = Times.of(problem, problem.nodes), Order(problem)
        assert times.wait == order.timeline.wait
        assert max(times.end) == sum(problem.cost) + sum(times.wait)


@pytest.mark.parametrize("is_deterministic", [True, False])
def test_the_solver_ends_in_time(*, is_deterministic: bool) -> None:
    """It would go on for seconds; an order in hand is no worse than the one that it was given."""
    problem = problems_of(random_program(2, 40))[-1]
    limits = limits_of(problem, "makespan")
    for _ in range(3):  # other work of the machine makes a run slow
        question = _Question(problem, problem.nodes, "makespan", limits, waits=False)
        solution = question.answer(Effort(0.1, is_deterministic))
        if question.seconds < 0.5:
            break
    assert 0 < question.seconds < 0.5
    if solution is not None:
        assert limits.least <= solution.least
        assert value(problem, solution.nodes, "makespan") <= limits.most
