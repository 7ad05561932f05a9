"""The sizes that factors have to have for a budget of elements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import prod

from hloopt.ir.attributes.typed import direction_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS, Opcode
from hloopt.ir.ordering import computation_post_order
from hloopt.shrink.factors import Factor, Rest, leaves, size_of
from hloopt.shrink.flow import Dimensions, Flow, ints

_SMALLEST = 2
"""Factors get no smaller than this, so that a dimension is still one."""
_PRODUCTS_PER_ELEMENT = 16
"""Products in a dot that take as long as one element of an array."""
_COSTS_NOTHING = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.WHILE, Opcode.CALL),
        *(Opcode.FUSION, Opcode.CONDITIONAL, Opcode.OPT_BARRIER),
    )
)
KNOWN_TRIPS = re.compile(r'("known_trip_count":\s*\{\s*"n":\s*")(\d{1,9})(")')
"""The number of trips in the configuration of a while: the second group."""


class Work:
    """The number of elements a module computes, as a function of the sizes of factors."""

    def __init__(self, flow: Flow) -> None:
        terms: Counter[Dimensions] = Counter()
        for computation, runs in _runs(flow).items():
            for dimensions, count in _elements(flow, computation).items():
                for trips, times in runs.items():
                    terms[trips + dimensions] += times * count
        merged: Counter[tuple[Factor, ...]] = Counter()
        for dimensions, count in terms.items():
            merged[tuple(sorted(leaves(dimensions), key=id))] += count
        self._terms = merged

    def elements(self, sizes: Mapping[Factor, int]) -> int:
        """The elements of all arrays computed, loops times their trips. O(distinct shapes)."""
        total = sum(
            count * prod([sizes.get(factor, factor.size) for factor in factors])
            for factors, count in self._terms.items()
        )
        return total // _PRODUCTS_PER_ELEMENT


def _elements(flow: Flow, computation: Computation) -> Counter[Dimensions]:
    """The work of one run of a computation, by the dimensions that it is multiplied by."""
    terms: Counter[Dimensions] = Counter()
    for instruction in computation.instructions:
        if instruction.opcode in _COSTS_NOTHING:
            continue
        for leaf in flow.values[instruction]:
            terms[leaf] += _PRODUCTS_PER_ELEMENT
        if instruction.opcode is Opcode.DOT:
            terms[_products(flow, instruction)] += 1
    return terms


def _products(flow: Flow, dot: Instruction) -> Dimensions:
    contracted = ints(dot, "lhs_contracting_dims")
    return (*flow.of(dot), *(flow.of(dot.operands[0])[d] for d in contracted))


def _runs(flow: Flow) -> dict[Computation, Counter[Dimensions]]:
    """The number of times each computation runs, as far as that is known, scalar ones left out.

    By the trips that can shrink.
    """
    module, loops = flow.module, flow.facts.loops
    runs: dict[Computation, Counter[Dimensions]] = {module.entry: Counter({(): 1})}
    for computation in reversed(computation_post_order(module)):
        mine = runs.get(computation, Counter())
        for instruction in computation.instructions:
            opcode = instruction.opcode
            if opcode is not Opcode.FUSION and opcode not in CONTROL_FLOW_CALLERS:
                continue
            counted = loops.get(instruction)
            trips = () if counted is None else (counted.trips,)
            times = _trips(instruction) if counted is None else 1
            for callee in instruction.called:
                theirs = runs.setdefault(callee, Counter())
                for outer, count in mine.items():
                    theirs[outer + trips] += count * times
    return runs


def _trips(instruction: Instruction) -> int:
    """The trips of a counted loop; 1 where they are not known."""
    if instruction.opcode is not Opcode.WHILE:
        return 1
    stated = KNOWN_TRIPS.search(instruction.attributes.get("backend_config", ""))
    if stated:
        return int(stated[2])
    test = instruction.called[1].root
    if test.opcode is Opcode.COMPARE and direction_of(test) == "LT":
        bound = test.operands[1]
        if bound.opcode is Opcode.CONSTANT and bound.payload.strip().isdecimal():
            return max(int(bound.payload), 1)
    return 1


def choose_sizes(
    works: Sequence[Work], free: Iterable[Factor], following: Mapping[Factor, Rest], budget: int
) -> dict[Factor, int]:
    """New sizes for free factors that are too large, with no module beyond the budget if possible.

    All are cut down to the same size, the largest that the budget allows, but different sizes stay
    different where they can: of factors that were 512 and 4096, one is 8 and the other 9. Those
    that are `following` others get what comes of it.
    """
    factors = sorted(free, key=lambda factor: factor.size)

    def cut(cap: int) -> dict[Factor, int]:
        sizes = _cut(factors, cap)
        for factor, rest in following.items():
            sizes[factor] = size_of([rest.part], sizes) + rest.more
        return sizes

    def fits(cap: int) -> bool:
        sizes = cut(cap)
        return all(work.elements(sizes) <= budget for work in works)

    low, high = _SMALLEST, max((factor.size for factor in factors), default=_SMALLEST)
    if fits(high):
        return {}
    while low + 1 < high:  # `high` does not fit; `low` does, or it is as small as it gets
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return {factor: size for factor, size in cut(low).items() if size != factor.size}


def _cut(factors: Sequence[Factor], cap: int) -> dict[Factor, int]:
    """The sizes of factors, in order of size, when none is much above `cap`."""
    sizes: dict[Factor, int] = {}
    given: dict[int, int] = {}
    for factor in factors:
        if factor.size <= cap:
            sizes[factor] = given[factor.size] = factor.size
        elif factor.size not in given:
            given[factor.size] = min(factor.size, max([cap - 1, *given.values()]) + 1)
        sizes[factor] = given[factor.size]
    return sizes
