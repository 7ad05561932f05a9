"""Moves of the search: what they pass and take along, and which of them break no rule."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from tests.scheduling.mixed_programs import mixed_program
from tests.scheduling.test_search import problems_of

from hloopt.scheduling.search.moves import Move, Mover
from hloopt.scheduling.search.order import Order
from hloopt.scheduling.search.problem import Problem

CONFIGS: tuple[dict[str, Any], ...] = (
    {},
    {"collective_permute_overlap_limit": 2, "schedule_send_recvs": True},
    {"preset": "xla-gpu", "parallel_collective_overlap_limit": 2},
    {
        "preset": "xla-gpu",
        "parallel_collective_overlap_limit": 3,
        "enable_collective_multi_streaming": True,
    },
    {"top_down_scheduling": True},
)


PROGRAMS = ((0, False), (1, False), (4, True), (7, True), (12, True))
"""Seeds of programs, and whether they have scheduling groups."""


def problems(program: tuple[int, bool], **options: Any) -> list[Problem]:
    seed, grouped = program
    text = mixed_program(seed, 8, grouped=grouped, calls=seed % 3 > 0)
    return problems_of(text, **options)


def random_orders(problem: Problem, rng: Random) -> Iterator[tuple[Order, Mover]]:
    """The plain order, and some that allowed moves lead to."""
    order = Order(problem)
    mover = Mover(order)
    count = len(order.nodes)
    for _ in range(15):
        yield order, mover
        move = mover.shift(rng.randrange(count), rng.randrange(count))
        if move is not None and order.is_allowed(*move):
            order.replace(*move)


# -- rules -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", CONFIGS, ids=str)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_move_is_allowed_that_breaks_no_rule(
    program: tuple[int, bool], options: dict[str, Any]
) -> None:
    rng = Random(program[0])
    verdicts = set()
    for problem in problems(program, **options):
        usage = max(usages(problem, Order(problem).nodes))
        for order, mover in random_orders(problem, rng):
            count = len(order.nodes)
            move = mover.shift(rng.randrange(count), rng.randrange(count))
            if move is None:
                continue
            problem.memory.limit = rng.choice((usage, usage // 2, usage + 32))
            expected = (
                keeps_hints(order, move)
                and keeps_limits(order, move)
                and keeps_memory_limit(order, move)
            )
            assert order.is_allowed(*move) == expected
            verdicts.add(expected)
            problem.memory.limit = usage
    assert verdicts == {False, True}


def moved(order: Order, move: Move) -> list[int]:
    at, nodes = move
    return [*order.nodes[:at], *nodes, *order.nodes[at + len(nodes) :]]


def keeps_hints(order: Order, move: Move) -> bool:
    """Members of a group side by side stay so; what is delayed goes no later, and so on."""
    problem = order.problem
    place = {node: n for n, node in enumerate(moved(order, move))}
    changed = {*move.nodes}
    return (
        all(
            place[after] == place[node] + 1
            for node, after in problem.follower.items()
            if changed & {node, after}
        )
        and all(place[node] <= order.position[node] for node in problem.not_later)
        and all(place[node] >= order.position[node] for node in problem.not_earlier)
    )


def keeps_limits(order: Order, move: Move) -> bool:
    problem = order.problem

    def claimants(nodes: list[int]) -> list[int]:
        return [node for node in nodes if problem.claims[node] is not None]

    after = claimants(moved(order, move))
    if after == claimants(order.nodes):
        return True
    if problem.claims_keep_order:
        return False
    left = [*problem.left]
    for node in reversed(after) if problem.bottom_up else after:
        claim = problem.claims[node]
        assert claim is not None
        if any(needed > left[resource] for resource, needed in claim[0]):
            return False
        for resource, change in claim[1]:
            left[resource] += change
    return True


def keeps_memory_limit(order: Order, move: Move) -> bool:
    at, nodes = move
    usage = usages(order.problem, moved(order, move))
    return max(usage[at : at + len(nodes)]) <= order.problem.memory.limit


def usages(problem: Problem, nodes: list[int]) -> list[int]:
    """The bytes in use at each place of an order, above what is alive below the call."""
    memory = problem.memory
    live = {*memory.alive_at_end}

    def size(buffers: set[int]) -> int:
        return sum(memory.size[buffer] for buffer in buffers - {*memory.alive_at_end})

    found = []
    gone: set[int] = set()
    for node in reversed(nodes):
        ended = sum(memory.size[buffer] for buffer in gone)
        before = size(live) - ended
        live |= {*memory.uses[node]}
        found.append(max(before + memory.inside[node], size(live) - ended))
        gone |= {*memory.begins[node]} & live & {*memory.alive_at_end}
        live -= {*memory.begins[node]} - {*memory.alive_at_end}
    return found[::-1]


# -- moves -----------------------------------------------------------------------------------------


def span(order: Order, node: int, target: int) -> list[int]:
    """The nodes between a node and its target, as the node meets them."""
    at = order.position[node]
    if target > at:
        return order.nodes[at : target + 1]
    return order.nodes[target : at + 1][::-1]


def taken_along(order: Order, node: int, target: int) -> set[int]:
    """The nodes on the way that a node cannot pass."""
    problem = order.problem
    bound = problem.successors if target > order.position[node] else problem.predecessors
    found = {node}
    for other in span(order, node, target):
        if other in found:
            found |= {*bound[other]}
    return found


def as_met(order: Order, node: int, target: int, met: list[int]) -> Move:
    """The move that leaves nodes as met on the way."""
    at = order.position[node]
    return Move(at, met) if target > at else Move(at + 1 - len(met), met[::-1])


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_node_passes_all_that_it_need_not_take_along(program: tuple[int, bool]) -> None:
    """A mover stops when it has passed enough work, and takes along nothing else."""
    rng = Random(program[0])
    for problem in problems(program):
        for order, mover in random_orders(problem, rng):
            node, target = rng.choice(order.nodes), rng.randrange(len(order.nodes))
            need = rng.choice((1 << 62, 1, 0, 2_000_000, 1_000_000_000))
            along = taken_along(order, node, target)
            passed: list[int] = []
            taken: list[int] = []
            expected = None
            work = 0
            for other in span(order, node, target):
                (taken if other in along else passed).append(other)
                if other not in along:
                    work += problem.cost[other]
                    expected = as_met(order, node, target, passed + taken)
                    if work >= need:
                        break
            assert mover.shift(node, target, need=need) == expected


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_resources_matter_to_overtakes_no_other_such_node(program: tuple[int, bool]) -> None:
    rng = Random(program[0])
    for problem in problems(program):
        for order, mover in random_orders(problem, rng):
            node, target = rng.choice(order.nodes), rng.randrange(len(order.nodes))
            move = mover.shift(node, target, keeps_claims=True)
            if move is None:
                continue
            before = order.nodes[move.at : move.at + len(move.nodes)]
            claimants = [n for n in before if problem.claims[n] is not None]
            assert [n for n in move.nodes if problem.claims[n] is not None] == claimants
            assert sorted(before) == sorted(move.nodes)
            assert mover.shift(node, target) is not None


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_node_is_brought_right_to_a_gate(program: tuple[int, bool]) -> None:
    rng = Random(program[0])
    brought = 0
    for problem in problems(program):
        for order, mover in random_orders(problem, rng):
            node, gate = rng.sample(order.nodes, 2)
            target = order.position[gate]
            move = mover.bring_in(node, gate)
            along = taken_along(order, node, target)
            if gate in along:
                assert move is None
                continue
            assert move is not None
            met = span(order, node, target)
            passed = [n for n in met if n not in along and n != gate]
            taken = [n for n in met if n in along and n != node]
            assert move == as_met(order, node, target, [*passed, node, gate, *taken])
            brought += 1
    assert brought


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_operation_stays_open_over_some_of_the_work_that_it_goes_to(
    program: tuple[int, bool],
) -> None:
    """Work counts from the far end until there is enough, or something with claims."""
    rng = Random(program[0])
    for problem in problems(program, collective_permute_overlap_limit=2):
        for order, mover in random_orders(problem, rng):
            if not problem.starts:
                break
            pair = rng.randrange(len(problem.starts))
            node = rng.choice((problem.starts[pair], problem.dones[pair]))
            target = rng.randrange(len(order.nodes))
            need = rng.choice((0, 1, 2_000_000, 1 << 62))
            along = taken_along(order, node, target)
            met = span(order, node, target)
            passed = [n for n in met if n not in along]
            last = max((n for n, other in enumerate(met) if other not in along), default=0)
            taken = [n for n in met[:last] if n in along and n != node]
            stop, work = len(passed), 0
            while stop and work < need and problem.claims[passed[stop - 1]] is None:
                stop -= 1
                work += problem.cost[passed[stop]]
            expected = [*passed[:stop], node, *passed[stop:], *taken]
            move = mover.shift_pair(node, target, need)
            assert move == (as_met(order, node, target, expected) if stop else None)


def test_some_nodes_are_not_passed_by_chance() -> None:
    (problem, *_) = problems(PROGRAMS[1])
    order = Order(problem)
    mover, last = Mover(order), len(order.nodes) - 1
    chances = {mover.shift(order.nodes[0], last, rng=Random(n)).nodes[0] for n in range(40)}  # type: ignore[union-attr]  # something is always passed
    assert len(chances) > 1
