"""The resources that operations in flight have, and what is left of them."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Protocol

from hloopt.ir import Instruction
from hloopt.scheduling.resources.resource import Needs, Resource

_UNLIMITED = 1 << 62


class ResourcesInUse:
    """The resources in use: by number, the units that are left and the operations in flight."""

    def __init__(self, resources: Sequence[Resource]) -> None:
        self.remaining = [
            resource.limit if resource.limit is not None else _UNLIMITED for resource in resources
        ]
        self.in_flight: list[dict[Instruction, None]] = [{} for _ in resources]
        """The starts of the operations that have the resource; of others what will release it."""


class OverlapCheck(Protocol):
    """The question of a target before an instruction is scheduled."""

    def __call__(self, instruction: Instruction, needs: Needs, in_use: ResourcesInUse) -> bool:
        """Whether the instruction may be scheduled."""

    def fact(self, instruction: Instruction) -> Hashable:
        """A cache key: instructions with equal keys and equal needs get equal answers."""
