"""Random problems of a few nodes, and the best of all their orders."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from hloopt.scheduling.search.exact.clock import Times
from hloopt.scheduling.search.exact.solve import Limits, Objective, value
from hloopt.scheduling.search.order import Order
from hloopt.scheduling.search.problem import NO_PAIR, Memory, Problem

_EVERYTHING = 1 << 40


def small_problem(seed: int, count: int = 7) -> Problem:
    """A problem whose plain order keeps every rule, with two operations.

    Nodes are numbered at random. The seed also decides which rules there are.
    """
    dice = Random(seed)
    nodes = dice.sample(range(count), count)
    edges = {(a, b) for b in range(count) for a in range(b) if dice.random() < 0.15}
    places = sorted(dice.sample(range(count), 4))
    pairs = [(places[0], places[2]), (places[1], places[3])]
    if dice.random() < 0.5:
        pairs = [(places[0], places[1]), (places[2], places[3])]
    memory = _memory(dice, count, nodes, edges)
    edges |= {*pairs}
    earlier: list[tuple[int, ...]] = [() for _ in nodes]
    later: list[tuple[int, ...]] = [() for _ in nodes]
    for before, after in sorted(edges):
        earlier[nodes[after]] += (nodes[before],)
        later[nodes[before]] += (nodes[after],)
    exposes = dice.choice(([True, True], [True, False], [False, True]))
    problem = Problem(
        nodes=nodes,
        cost=[dice.choice((0, 0, 2, 4, 6)) for _ in range(count)],
        predecessors=earlier,
        successors=later,
        starts=[nodes[start] for start, _ in pairs],
        dones=[nodes[done] for _, done in pairs],
        latency=[dice.choice((4, 10, 16)) for _ in pairs],
        exposes=exposes,
        weight=[1001 if exposed else 1000 for exposed in exposes],
        pair_of_start=[NO_PAIR] * count,
        pair_of_done=[NO_PAIR] * count,
        claims=[None] * count,
        left=[_EVERYTHING, _EVERYTHING],
        claims_keep_order=dice.random() < 0.15,
        bottom_up=dice.random() < 0.7,
        memory=memory,
        follower={},
        not_later=frozenset(),
        not_earlier=frozenset(),
    )
    for pair, (start, done) in enumerate(pairs):
        problem.pair_of_start[nodes[start]] = problem.pair_of_done[nodes[done]] = pair
    _add_claims(dice, problem)
    _add_pins(dice, problem)
    if dice.random() < 0.5:
        problem.memory.limit = Order(problem).peak()
    return problem


def _memory(dice: Random, count: int, nodes: list[int], edges: set[tuple[int, int]]) -> Memory:
    """Buffers, whose users come to have `edges` from where these begin."""
    memory = Memory([], [() for _ in nodes], [() for _ in nodes], [0] * count, [], _EVERYTHING)
    for buffer in range(dice.choice((0, 4, 8))):
        memory.size.append(dice.choice((0, 8, 16, 24)))
        users = dice.sample(range(count), dice.randint(1, 3))
        if dice.random() < 0.8:
            begin = min(users)
            memory.begins[nodes[begin]] += (buffer,)
            edges.update((begin, user) for user in users if user != begin)
        if dice.random() < 0.2:
            memory.alive_at_end.append(buffer)
        for user in users:
            memory.uses[nodes[user]] += (buffer,)
    for node in range(count):
        memory.inside[node] = dice.choice((0, 0, 0, 16))
    return memory


def _add_claims(dice: Random, problem: Problem) -> None:
    """Let operations hold a resource, and perhaps another node need some of it for itself."""
    for start, done in zip(problem.starts, problem.dones, strict=True):
        takes, gives = (done, start) if problem.bottom_up else (start, done)
        resource = dice.choice((0, 0, 1))
        problem.claims[takes] = ((resource, 1),), ((resource, -1),)
        problem.claims[gives] = (), ((resource, 1),)
    for node, claim in enumerate(problem.claims):
        if claim is None and dice.random() < 0.15:
            problem.claims[node] = ((0, dice.choice((1, 2))),), ()
    for resource in (0, 1):
        if dice.random() < 0.7:
            problem.left[resource] = _least_left(problem, resource)
    if dice.random() < 0.15:
        problem.left[0] = max(0, _least_left(problem, 0) - 1)


def _least_left(problem: Problem, resource: int) -> int:
    """The least amount of a resource that the plain order can do with."""
    least = taken = 0
    for node in reversed(problem.nodes) if problem.bottom_up else problem.nodes:
        needs, changes = problem.claims[node] or ((), ())
        least = max([least, *(taken + needed for r, needed in needs if r == resource)])
        taken -= sum(change for r, change in changes if r == resource)
    return least


def _add_pins(dice: Random, problem: Problem) -> None:
    """Let some neighbours be a group, and some nodes have a hint."""
    place = dice.randrange(len(problem.nodes) - 1)
    if dice.random() < 0.2:
        problem.follower[problem.nodes[place]] = problem.nodes[place + 1]
    if dice.random() < 0.3:
        problem.not_later = frozenset(dice.sample(problem.nodes, 1))
    if dice.random() < 0.3:
        problem.not_earlier = frozenset(dice.sample(problem.nodes, 1))


def limits_of(problem: Problem, objective: Objective) -> Limits:
    """Those of the plain order."""
    times = Times.of(problem, problem.nodes)
    return Limits(sum(problem.cost), max(times.end), times.exposed(problem))


def best_value(problem: Problem, objective: Objective, limits: Limits) -> int:
    """The least value of all orders that keep every rule and are within the limits."""
    order = Order(problem)
    found = []
    for nodes in all_orders(problem):
        times = Times.of(problem, nodes)
        if (
            max(times.end) <= limits.most
            and times.exposed(problem) <= limits.most_exposed
            and order.is_allowed(0, nodes)
        ):
            found.append(value(problem, nodes, objective))
    return min(found)


def all_orders(problem: Problem) -> Iterator[list[int]]:
    """Every order that keeps the dependencies."""
    count = len(problem.nodes)
    order: list[int] = []

    def extended() -> Iterator[list[int]]:
        if len(order) == count:
            yield [*order]
        for node in range(count):
            if node not in order and {*problem.predecessors[node]} <= {*order}:
                order.append(node)
                yield from extended()
                order.pop()

    yield from extended()
