"""Resource trackers that records describe."""

from __future__ import annotations

from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.forms import INT, keys, list_of, mapping, only
from conformance_lib.selector_syntax import NAME, OPCODE
from hloopt.ir import Instruction
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.engine.hooks import NO_HOOKS, TargetHooks
from hloopt.scheduling.resources.gpu_tracker import GpuResourceTracker
from hloopt.scheduling.resources.resource import Hazard, Resource, Uses
from hloopt.scheduling.resources.tracker import GENERIC_COUNT, RESOURCE_OF, ResourceTracker

TRACKER = keys(
    {},
    {
        "resource_hazard": mapping(NAME, only(*(h.name.lower().replace("_", "-") for h in Hazard))),
        "extra_resources": mapping(NAME, keys({"released_by": OPCODE, "occupied_by": OPCODE})),
        "only_resource_limits": mapping(NAME, INT),
        "not_valuable_for_selective_overlap": list_of(NAME),
    },
    what="key of async_tracker",
)


class DescribedTracker(ResourceTracker):
    """The generic tracker with the hazards, limits and resources of a description."""

    def __init__(self, config: SchedulerConfig, description: dict[str, Any]) -> None:
        super().__init__(config)
        if reason := TRACKER.problem(description):
            raise RecordError(reason)
        self._extra = description.get("extra_resources", {})
        self._not_valuable = description.get("not_valuable_for_selective_overlap", ())
        self._numbers = {opcode.value: number for opcode, number in RESOURCE_OF.items()}
        for name in self._extra:
            self._numbers[name] = len(self.resources)
            self.resources.append(Resource(name))
        assert len(self.resources) == GENERIC_COUNT + len(self._extra)
        limits = description.get("only_resource_limits")
        if limits is not None:
            self.resources = [resource._replace(limit=None) for resource in self.resources]
            for name, limit in limits.items():
                self._change(name, limit=limit)
        for name, hazard in description.get("resource_hazard", {}).items():
            self._change(name, hazard=Hazard[hazard.upper().replace("-", "_")])

    def _change(self, name: str, **values: Any) -> None:
        number = self._numbers[name]
        self.resources[number] = self.resources[number]._replace(**values)

    def uses(self, instruction: Instruction) -> Uses:
        opcode = instruction.opcode.value
        more: list[tuple[int, Any]] = []
        for name, roles in self._extra.items():
            if opcode == roles["released_by"]:
                more.append((self._numbers[name], self.at_start))
            if opcode == roles["occupied_by"]:
                more.append((self._numbers[name], self.at_done))
        return (*super().uses(instruction), *more)

    def is_valuable(self, instruction: Instruction) -> bool:
        return instruction.name not in self._not_valuable


def find_hooks(description: Any) -> TargetHooks:
    """The hooks with the tracker that a record's `async_tracker` asks for."""
    if description is None:
        return NO_HOOKS
    if description == "gpu":
        return TargetHooks(tracker=GpuResourceTracker)
    return TargetHooks(tracker=lambda config: DescribedTracker(config, description))
