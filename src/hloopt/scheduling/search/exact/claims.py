"""The claims of nodes on resources, as constraints on an order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.scheduling.search.exact.places import Places

if TYPE_CHECKING:
    from ortools.sat.python.cp_model import CpModel


def limit_claims(model: CpModel, places: Places) -> None:
    """Let each node find what it needs, after those that pick theirs before it. O(claims²).

    Where claims keep their order, they do so anyway. The times for which resources are taken prove
    no more: constraints on them made no program of the gap table faster to solve.
    """
    relations = places.relations
    if relations.claims_keep_order:
        return
    problem = relations.problem
    left: dict[int, dict[int, int]] = {}
    """By resource and node by how much picking the node changes what is left."""
    for node, claim in enumerate(problem.claims):
        for resource, change in claim[1] if claim is not None else ():
            left.setdefault(resource, {})[node] = change
    for node in relations.placed:
        claim = problem.claims[node]
        for resource, needed in claim[0] if claim is not None else ():
            changes = [
                change * (places.before(node, n) if problem.bottom_up else places.before(n, node))
                for n, change in left.get(resource, {}).items()
                if n != node
            ]
            model.add(problem.left[resource] + sum(changes) >= needed)
