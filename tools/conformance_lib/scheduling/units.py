"""Records that ask one question of the scheduler's parts, without running a pass."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import compare
from conformance_lib.records import text_of
from conformance_lib.scheduling.cost_model_units import COST_MODEL_UNITS
from hloopt.analysis.latency.model import stated_latency
from hloopt.ir import Instruction
from hloopt.ir.attributes.frontend_attributes import set_frontend_attributes
from hloopt.scheduling.config import SchedulerConfig
from hloopt.scheduling.resources.gpu_tracker import GpuResourceTracker
from hloopt.scheduling.resources.resource import Usage
from hloopt.scheduling.state.sharing import SharedResource
from hloopt.text import parse_module

Unit = Callable[[Mapping[str, Any]], Iterator[str]]


def _latency_from_metadata(fields: Mapping[str, Any]) -> Iterator[str]:
    module = parse_module("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }")
    for case in fields["cases"]:
        text = case["latency_metadata"]
        set_frontend_attributes(
            module.entry.root, {} if text is None else {"latency_metadata": text}
        )
        found = stated_latency(module.entry.root, case["cycles_per_microsecond"])
        yield from compare(f"latency of {text}", found, case["equals"])


def _gpu_resources(fields: Mapping[str, Any]) -> Iterator[str]:
    tracker = GpuResourceTracker(SchedulerConfig(preset="xla-gpu").resolved())
    instructions = {i.name: i for i in parse_module(text_of(fields)).instructions()}
    for case in fields["cases"]:
        instruction = instructions[case["instr"]]
        found = {
            "supported_async_start": tracker.is_start(instruction),
            "supported_async_done": tracker.is_done(instruction),
            "resources": [
                [tracker.resources[r].name, usage.name.lower()]
                for r, usage in tracker.uses(instruction)
            ],
            "resource_counts": sum(u is Usage.OCCUPY for _, u in tracker.uses(instruction)),
        }
        if isinstance(case.get("resource_counts"), dict):
            found["resource_counts"] = _recursive_counts(tracker, instruction)
        for key, expected in case.items():
            if key != "instr":
                yield from compare(f"{key} of %{instruction.name}", found[key], expected)


def _recursive_counts(tracker: GpuResourceTracker, instruction: Instruction) -> dict[str, int]:
    """The number of times an instruction, with all that it calls, occupies each resource."""
    counts: Counter[str] = Counter()
    waiting = [instruction]
    while waiting:
        current = waiting.pop()
        counts.update(
            tracker.resources[number].name
            for number, usage in tracker.uses(current)
            if usage is Usage.OCCUPY
        )
        waiting += [i for computation in current.called for i in computation.instructions]
    return dict(counts)


def _gpu_hazards(fields: Mapping[str, Any]) -> Iterator[str]:
    for case in fields["cases"]:
        config = SchedulerConfig(preset="xla-gpu", **case["config"]).resolved()
        resources = {r.name: r for r in GpuResourceTracker(config).resources}
        for name, expected in case["hazards"].items():
            yield from compare(f"hazard of {name}", resources[name].hazard.name.lower(), expected)


def _shared_resource(fields: Mapping[str, Any]) -> Iterator[str]:
    for number, case in enumerate(fields["cases"]):
        resource: SharedResource[str] = SharedResource()
        for operation in case["ops"]:
            ((name, value),) = operation.items()
            what = f"case {number}, {operation}"
            match name:
                case "add":
                    resource.add(value[1], case["latency"][value[1]], value[0])
                case "delete" | "delete_missing":
                    found = resource.delete(value[1], value[0])
                    yield from compare(what, found, name == "delete")
                case "finish_times":
                    pairs = zip(resource.finish, value, strict=True)
                    if any(abs(ours - theirs) > fields["tolerance"] for ours, theirs in pairs):
                        yield f"{what}: found {resource.finish}"
                case _:
                    raise RecordError(f"unknown operation {name}")


def _gpu_valuable(fields: Mapping[str, Any]) -> Iterator[str]:
    instructions = {i.name: i for i in parse_module(text_of(fields)).instructions()}
    for name, cost in fields["reification_cost"].items():
        text = json.dumps({"reification_cost": [cost]})
        instructions[name].set_attribute("backend_config", text)
    for case in fields["cases"]:
        config = SchedulerConfig(preset="xla-gpu", **case["config"]).resolved()
        tracker = GpuResourceTracker(config)
        for name, expected in case["valuable"].items():
            found = tracker.is_valuable(instructions[name])
            yield from compare(f"%{name} is valuable", found, expected)


UNITS: dict[str, Unit] = {
    "gpu_valuable_for_selective_overlap": _gpu_valuable,
    "shareable_resource_occupiers": _shared_resource,
    "latency_from_metadata": _latency_from_metadata,
    "gpu_resources": _gpu_resources,
    "gpu_resource_hazards": _gpu_hazards,
    **COST_MODEL_UNITS,
}
"""The questions by the name that records give them."""


FUTURE_UNITS = frozenset(("profile_accuracy_check", "memory_fencing_threshold"))
"""Questions of the documents that no table shows, and that nothing here answers."""
