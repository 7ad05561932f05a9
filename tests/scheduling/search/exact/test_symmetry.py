"""Nodes and operations that are alike, and all that tells them apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.scheduling.search.exact.small_problems import best_value, limits_of

from hloopt.scheduling.search.exact.relations import Relations
from hloopt.scheduling.search.exact.solve import Effort, solve
from hloopt.scheduling.search.exact.symmetry import alike
from hloopt.scheduling.search.problem import NO_PAIR, Claim, Memory, Problem

TAKES: Claim = (((0, 1),), ((0, -1),))
GIVES: Claim = ((), ((0, 1),))
SAME = {(0, 2), (4, 5)}
"""The starts of two operations, and two nodes of work."""


def twins() -> Problem:
    """Operations from 0 to 1 and from 2 to 3, work 4 and 5, and 6 that reads all results.

    Each result is a buffer of 8 bytes.
    """
    results = (1, 3, 4, 5)
    memory = Memory(
        size=[8] * 4,
        uses=[(results.index(n),) if n in results else () for n in range(6)] + [(0, 1, 2, 3)],
        begins=[(results.index(n),) if n in results else () for n in range(7)],
        inside=[0] * 7,
        alive_at_end=[],
        limit=32,
    )
    return Problem(
        nodes=[0, 2, 4, 5, 1, 3, 6],
        cost=[1, 1, 1, 1, 5, 5, 1],
        predecessors=[(), (0,), (), (2,), (), (), results],
        successors=[(1,), (6,), (3,), (6,), (6,), (6,), ()],
        starts=[0, 2],
        dones=[1, 3],
        latency=[9, 9],
        exposes=[True, True],
        weight=[1000, 1000],
        pair_of_start=[0, NO_PAIR, 1, NO_PAIR, NO_PAIR, NO_PAIR, NO_PAIR],
        pair_of_done=[NO_PAIR, 0, NO_PAIR, 1, NO_PAIR, NO_PAIR, NO_PAIR],
        claims=[GIVES, TAKES, GIVES, TAKES, None, None, None],
        left=[2],
        claims_keep_order=False,
        bottom_up=True,
        memory=memory,
        follower={},
        not_later=frozenset(),
        not_earlier=frozenset(),
    )


def found(problem: Problem) -> set[tuple[int, int]]:
    return {*alike(Relations.of(problem), problem.nodes)}


def with_memory(problem: Problem, **changes: object) -> Problem:
    return replace(problem, memory=replace(problem.memory, **changes))  # type: ignore[arg-type]  # by name


def test_operations_are_alike_and_so_is_work() -> None:
    assert found(twins()) == SAME


def test_the_order_that_is_known_is_the_one_of_those_that_are_alike() -> None:
    problem = replace(twins(), nodes=[2, 0, 5, 4, 1, 3, 6])
    assert found(problem) == {(2, 0), (5, 4)}


WORK_DIFFERS: dict[str, Callable[[Problem], Problem]] = {
    "cost": lambda p: replace(p, cost=[1, 1, 1, 1, 5, 6, 1]),
    "operands": lambda p: replace(
        p,
        predecessors=[*p.predecessors[:5], (0,), p.predecessors[6]],
        successors=[(1, 5), *p.successors[1:]],
    ),
    "users": lambda p: replace(
        p,
        predecessors=[*p.predecessors[:6], (1, 3, 4)],
        successors=[*p.successors[:5], (), ()],
    ),
    "claims": lambda p: replace(p, claims=[*p.claims[:5], (((0, 1),), ()), None]),
    "memory of callees": lambda p: with_memory(p, inside=[0, 0, 0, 0, 0, 8, 0]),
    "sizes of buffers": lambda p: with_memory(p, size=[8, 8, 8, 16]),
    "where buffers begin": lambda p: with_memory(p, begins=[(), (0,), (), (1,), (2,), (), (3,)]),
    "who uses buffers": lambda p: with_memory(p, uses=[(), (0,), (), (1,), (2,), (3,), (0, 1, 2)]),
    "what is alive at the end": lambda p: with_memory(p, alive_at_end=[3]),
    "hint to be late": lambda p: replace(p, not_earlier=frozenset([5])),
    "hint to be early": lambda p: replace(p, not_later=frozenset([4])),
    "group": lambda p: replace(p, follower={4: 5}),
}


@pytest.mark.parametrize("difference", WORK_DIFFERS)
def test_work_is_told_apart_by(difference: str) -> None:
    assert (4, 5) not in found(WORK_DIFFERS[difference](twins()))


OPERATIONS_DIFFER: dict[str, Callable[[Problem], Problem]] = {
    "latency": lambda p: replace(p, latency=[9, 8]),
    "what counts": lambda p: replace(p, weight=[1001, 1000]),
    "cost of the done": lambda p: replace(p, cost=[1, 1, 1, 2, 5, 5, 1]),
    "users of the done": lambda p: replace(
        p,
        predecessors=[*p.predecessors[:6], (1, 4, 5)],
        successors=[*p.successors[:3], (), *p.successors[4:]],
    ),
    "claims": lambda p: replace(p, claims=[*p.claims[:3], None, None, None, None]),
    "claims that keep their order": lambda p: replace(p, claims_keep_order=True),
    "claims that do not fit": lambda p: replace(p, left=[0]),
    "hint of the done": lambda p: replace(p, not_later=frozenset([3])),
    "operand of the done": lambda p: replace(
        p,
        predecessors=[*p.predecessors[:3], (2, 4), *p.predecessors[4:]],
        successors=[*p.successors[:4], (3, 6), *p.successors[5:]],
    ),
}


@pytest.mark.parametrize("difference", OPERATIONS_DIFFER)
def test_operations_are_told_apart_by(difference: str) -> None:
    assert (0, 2) not in found(OPERATIONS_DIFFER[difference](twins()))


def test_three_that_are_alike_come_in_one_order() -> None:
    problem = replace(twins(), cost=[5] * 7, latency=[0, 0])
    pairs = replace(
        problem,
        starts=[],
        dones=[],
        latency=[],
        exposes=[],
        weight=[],
        predecessors=[()] * 6 + [tuple(range(6))],
        successors=[(6,)] * 6 + [()],
        pair_of_start=[NO_PAIR] * 7,
        pair_of_done=[NO_PAIR] * 7,
        claims=[None] * 7,
        memory=Memory([], [()] * 7, [()] * 7, [0] * 7, [], 0),
    )
    assert found(pairs) == {(0, 2), (2, 4), (4, 5), (5, 1), (1, 3)}


def test_the_best_order_is_found_among_those_that_are_alike() -> None:
    pytest.importorskip("ortools", reason="needs the extra solver")
    for left in ([1], [2]):
        problem = replace(twins(), left=left, nodes=[0, 1, 2, 3, 4, 5, 6])
        limits = limits_of(problem, "makespan")
        solution = solve(problem, problem.nodes, "makespan", limits, Effort(10, True))
        assert solution is not None
        assert solution.least == best_value(problem, "makespan", limits)
