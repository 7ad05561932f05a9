"""What holds of any schedule of asynchronous operations."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.attributes.scheduling_annotations import group_of
from hloopt.ir.opcode import ASYNC
from hloopt.scheduling.resources.tracker import ResourceTracker


def violations(module: Module, tracker: ResourceTracker) -> list[str]:
    """Dependencies, overlap limits and groups that the order of the instructions breaks."""
    found: list[str] = []
    for computation in module.computations.values():
        if not computation.is_fusion:
            found += _broken_dependencies(computation)
            found += _torn_groups(computation, tracker)
    found += _exceeded_limits(module.entry, tracker)
    return found


def _broken_dependencies(computation: Computation) -> Iterator[str]:
    seen: set[Instruction] = set()
    for instruction in computation.instructions:
        for before in (*instruction.operands, *instruction.control_predecessors):
            if before not in seen:
                yield f"%{instruction.name} comes before %{before.name}"
        seen.add(instruction)


def _torn_groups(computation: Computation, tracker: ResourceTracker) -> Iterator[str]:
    """Groups with something between their members; starts and dones may be left over."""
    order = list(computation.instructions)
    members: dict[int, list[int]] = {}
    for position, instruction in enumerate(order):
        group = group_of(instruction)
        if group is not None and not (
            tracker.is_start(instruction) or tracker.is_done(instruction)
        ):
            members.setdefault(group, []).append(position)
    for group, positions in members.items():
        for position in range(positions[0], positions[-1] + 1):
            if group_of(order[position]) != group:
                yield f"%{order[position].name} is among the members of group {group}"


def _exceeded_limits(computation: Computation, tracker: ResourceTracker) -> Iterator[str]:
    limits = [resource.limit for resource in tracker.resources]
    for instruction, in_use in _in_use(computation, tracker):
        for resource, count in in_use.items():
            limit = limits[resource]
            if limit is not None and count > limit:
                yield f"{count} of {tracker.resources[resource].name} in use at %{instruction.name}"


def _in_use(
    computation: Computation, tracker: ResourceTracker
) -> Iterator[tuple[Instruction, dict[int, int]]]:
    """By instruction how much of each resource is in use while it and what it calls runs."""
    running: dict[int, int] = {}
    for instruction in reversed(list(computation.instructions)):
        if tracker.is_done(instruction):
            for resource, _ in tracker.uses(instruction):
                running[resource] = running.get(resource, 0) + 1
        total = dict(running)
        is_async = instruction.opcode in ASYNC
        looks_inside = instruction.opcode is Opcode.ASYNC_START and tracker.looks_inside(
            instruction
        )
        for callee in instruction.called if looks_inside or not is_async else ():
            for _, inside in _in_use(callee, tracker):
                for resource, count in inside.items():
                    together = running.get(resource, 0) + count
                    total[resource] = max(total.get(resource, 0), together)
        yield instruction, total
        if tracker.is_start(instruction):
            for resource, _ in tracker.uses(instruction):
                running[resource] = running.get(resource, 0) - 1
