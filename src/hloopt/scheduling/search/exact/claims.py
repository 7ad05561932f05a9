"""The claims of nodes on resources, as constraints on an order."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from hloopt.scheduling.search.exact.places import Places
from hloopt.scheduling.search.exact.relations import claimants_of
from hloopt.scheduling.search.problem import Claim

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel, LiteralT


def limit_claims(model: CpModel, places: Places) -> None:
    """Let each node find what it needs, after those that pick theirs before it. O(claims²).

    Where claims do not fit in the plain order, they may also stay as they are. Constraints on the
    times for which resources are taken would add nothing: with them, solving 74 generated problems
    took as long, and as many were proved.
    """
    relations = places.relations
    problem = relations.problem
    claimants = claimants_of(problem)
    if problem.claims_keep_order:
        return
    has_to_fit: list[LiteralT] = []
    if not relations.claims_fit:
        stays = model.new_bool_var("")
        model.add_hint(stays, claimants == sorted(claimants, key=places.hint.__getitem__))
        for node, claimant in pairwise(claimants):
            model.add_implication(stays, places.before(node, claimant))
        has_to_fit.append(~stays)
    left: dict[int, dict[int, int]] = {}
    """By resource and node by how much picking the node changes what is left."""
    for node in claimants:
        for resource, change in _claim(places, node)[1]:
            left.setdefault(resource, {})[node] = change
    for node in claimants:
        for resource, needed in _claim(places, node)[0]:
            changes = [
                change * (places.before(node, n) if problem.bottom_up else places.before(n, node))
                for n, change in left.get(resource, {}).items()
                if n != node
            ]
            limit = problem.left[resource] + sum(changes) >= needed
            model.add(limit).only_enforce_if(*has_to_fit)


def _claim(places: Places, node: int) -> Claim:
    claim = places.relations.problem.claims[node]
    assert claim is not None
    return claim
