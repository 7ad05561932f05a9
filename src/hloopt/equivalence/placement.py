"""On which devices a module runs, and what their inputs are parts of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hloopt.analysis.stage import Stage
from hloopt.equivalence.manual_regions import boundaries_of, without_boundaries
from hloopt.interpreter.array_plans import ArrayPlan, array_plans
from hloopt.interpreter.evaluation import Device
from hloopt.interpreter.machine import devices_of
from hloopt.interpreter.roles import Role
from hloopt.ir.attributes.values.shards import Shards, shards_of, whole
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.module import Module
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.ir.shapes.leaf_annotations import leaf_shardings


class Placement(NamedTuple):
    """A module and the devices that run it."""

    module: Module
    """As it was read."""
    program: Module
    """As it runs: manual regions are plain operations."""
    grid: Grid
    """The replicas and partitions that run it."""
    partitions: int
    """For how many partitions it is: more than run it where one device can compute all."""
    is_whole: bool | None
    """Whether it computes for all partitions at once, not partitioned; None: the text does not
    tell."""

    @property
    def devices(self) -> list[Device]:
        """Raises RunError for too many."""
        return devices_of(*self.grid)

    def plans(self, roles: Sequence[Role] = ()) -> list[ArrayPlan | None]:
        """The plans by which the arrays of the parameters are made, going by this module alone."""
        partitions = self.grid.partitions
        if not self.is_whole:
            return array_plans(self.module.entry, partitions, roles)
        plans: list[ArrayPlan | None] = []
        for plan in array_plans(self.module.entry, 1, roles):
            if plan is not None:
                shards = whole(len(plan.dimensions), partitions)
                plan = plan._replace(shards=shards)
            plans.append(plan)
        if partitions > 1:
            for number, groups in _manual_groups(self.module, partitions):
                plan = plans[number]
                assert plan is not None
                plans[number] = plan._replace(shards=plan.shards._replace(groups=groups))
        return plans


def place(
    module: Module,
    counts: tuple[int, int] | None = None,
    *,
    is_whole: bool | None = None,
    is_sure: bool = False,
) -> Placement:
    """The devices for a module: `counts` are replicas and partitions, if somebody asks for them.

    A program that is not partitioned yet runs on one device: it computes for all of them. One with
    manual regions (`shard_map`) runs on all, since what they do inside of these depends on the
    device. `is_whole` says which it is where the text does not tell, and, where `is_sure`, also
    where it seems to.

    Raises RunError where it is not clear which part a device has. O(instructions).
    """
    grid = device_counts(module)
    stage = Stage.of(module)
    holds = stage.partitioned.holds
    if holds is not None and not is_sure:
        is_whole = not holds
    running = Grid(*counts) if counts else grid
    if not is_whole:
        return Placement(module, module, running, running.partitions, is_whole)
    partitions = counts[1] if counts else max(grid.partitions, stage.devices // grid.replicas)
    boundaries = boundaries_of(module)
    is_needed = boundaries or _depends_on_the_device(module, partitions)
    running = Grid(running.replicas, partitions if is_needed else 1)
    program = without_boundaries(module, running) if boundaries else module
    return Placement(module, program, running, partitions, is_whole=True)


def _depends_on_the_device(module: Module, partitions: int) -> bool:
    """Whether what is not partitioned yet has values of single devices."""
    return any(
        instruction.opcode in COLLECTIVES or instruction.opcode is Opcode.PARTITION_ID
        for instruction in module.instructions()
    ) or any(True for _ in _manual_groups(module, partitions))


def _manual_groups(module: Module, partitions: int) -> list[tuple[int, tuple[int, ...]]]:
    """The number of each array of the parameters that not all devices share, and their groups."""
    found = []
    number = 0
    for parameter in module.entry.parameters:
        leaves = parameter.shape.leaves()
        shardings = leaf_shardings(parameter) or [""] * len(leaves)
        for leaf, sharding in zip(leaves, shardings, strict=True):
            if "manual" in sharding and not leaf.is_token:
                shards = shards_of(sharding, leaf.rank, partitions)
                if isinstance(shards, Shards) and len(set(shards.groups)) > 1:
                    found.append((number, shards.groups))
            number += 1
    return found
