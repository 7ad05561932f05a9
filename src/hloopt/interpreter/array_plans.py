"""Plans of parameters: how their arrays are made, and which device has which part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hloopt.interpreter.roles import NO_ROLE, Role
from hloopt.ir.attributes.values.shards import Shards, separate, shards_of
from hloopt.ir.computation import Computation
from hloopt.ir.shapes.leaf_annotations import leaf_shardings, parameter_replication


class ArrayPlan(NamedTuple):
    """The plan of one array of a parameter, for all devices."""

    dimensions: tuple[int, ...]
    """Of the whole array, of which partitions have parts."""
    shards: Shards
    same_on_replicas: bool = False
    role: Role = NO_ROLE

    def on_one_array(self) -> ArrayPlan:
        """The same, all devices having parts of one array."""
        return self._replace(shards=self.shards._replace(groups=(0,) * len(self.shards.groups)))


def array_plans(
    entry: Computation, partitions: int, roles: Sequence[Role] = ()
) -> list[ArrayPlan | None]:
    """Plans for the parameters' arrays, whose shapes are those of one device; None for tokens.

    Devices get values of their own, except where the parameter says that it is replicated: parts of
    one array where its sharding says so.
    """
    plans: list[ArrayPlan | None] = []
    for parameter in entry.parameters:
        leaves = parameter.shape.leaves()
        replicated = parameter_replication(parameter) or [False] * len(leaves)
        shardings = leaf_shardings(parameter) or [""] * len(leaves)
        for leaf, same, sharding in zip(leaves, replicated, shardings, strict=True):
            if leaf.is_token:
                plans.append(None)
                continue
            found = shards_of(sharding, leaf.rank, partitions) if sharding else ""
            shards = separate(leaf.rank, partitions) if isinstance(found, str) else found
            dimensions = tuple(n * k for n, k in zip(leaf.dimensions, shards.counts, strict=True))
            role = roles[len(plans)] if roles else NO_ROLE
            plans.append(ArrayPlan(dimensions, shards, same, role))
    return plans
