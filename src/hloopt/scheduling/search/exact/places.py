"""The places of nodes in an order, as variables of the CP-SAT solver."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from hloopt.scheduling.search.exact.relations import Relations
from hloopt.scheduling.search.exact.symmetry import alike

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, IntVar, LiteralT


class Places:
    """By node its place among those that are placed, and for two nodes which comes first.

    The places in some order are a hint for the solver.
    """

    def __init__(self, model: CpModel, relations: Relations, order: Sequence[int]) -> None:
        """`order` keeps every rule. O(nodes³)."""
        self._model = model
        self.relations = relations
        nodes = relations.placed
        placed = {*nodes}
        self.hint = {node: at for at, node in enumerate(n for n in order if n in placed)}
        """By node its place in the order that is known."""
        self._at: dict[int, IntVar] = {}
        for node in nodes:
            earlier = sum(relations.precedes(other, node) for other in nodes)
            later = sum(relations.precedes(node, other) for other in nodes)
            self._at[node] = self.variable(earlier, len(nodes) - 1 - later, self.hint[node])
        self._first: dict[tuple[int, int], IntVar] = {}
        """Whether the first node of two comes first; their order decides about the key."""
        self._add_order()
        self._add_pins()

    def __getitem__(self, node: int) -> IntVar:
        return self._at[node]

    def before(self, node: int, other: int) -> LiteralT:
        """Whether a node comes before another."""
        if self.relations.precedes(node, other):
            return True
        if self.relations.precedes(other, node):
            return False
        literal = self._first.get((node, other))
        return ~self._first[other, node] if literal is None else literal

    @property
    def undecided(self) -> list[tuple[int, int]]:
        """Two nodes each of which either may come first."""
        return list(self._first)

    def last_of(self, nodes: Sequence[int]) -> IntVar:
        """The place of the last of some nodes, or a later one."""
        last = self.relations.last_of(nodes)
        if len(last) == 1:
            return self._at[last[0]]
        hint = max(self.hint[node] for node in last)
        place = self.variable(0, len(self._at) - 1, hint)
        for node in last:
            self._model.add(place >= self._at[node])
        return place

    def variable(self, least: int, most: int, hint: int) -> IntVar:
        """A variable that is `hint` in the order that is known."""
        variable = self._model.new_int_var(least, most, "")
        self._model.add_hint(variable, hint)
        return variable

    def _add_order(self) -> None:
        model, at, nodes = self._model, self._at, self.relations.placed
        model.add_all_different(list(at.values()))
        for node in nodes:
            earlier = [other for other in nodes if self.relations.precedes(other, node)]
            for other in self.relations.last_of(earlier):
                model.add(at[node] > at[other])
        for pair in combinations(nodes, 2):
            node, other = pair
            if self.relations.precedes(node, other) or self.relations.precedes(other, node):
                continue
            literal = self._first[pair] = model.new_bool_var("")
            model.add_hint(literal, self.hint[node] < self.hint[other])
            model.add(at[node] < at[other]).only_enforce_if(literal)
            model.add(at[other] < at[node]).only_enforce_if(~literal)
        by_hint = sorted(nodes, key=self.hint.__getitem__)
        for node, other in alike(self.relations, by_hint):
            model.add(at[node] < at[other])

    def _add_pins(self) -> None:
        """Keep groups side by side, and nodes on their side of where the plain order has them."""
        problem, at = self.relations.problem, self._at
        for node, follower in problem.follower.items():
            self._model.add(at[follower] == at[node] + 1)
        for place, node in enumerate(problem.nodes):
            if node in problem.not_later:
                self._model.add(at[node] <= place)
            if node in problem.not_earlier:
                self._model.add(at[node] >= place)
