"""Models of time that records of the scheduler name."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from conformance_lib.errors import RecordError
from hloopt.analysis.latency import FixedModel, GpuFixedModel, LatencyModel, Origin, Time
from hloopt.analysis.latency.fixed import HIGH, MEDIUM
from hloopt.analysis.latency.profile import Profile, ProfileModel
from hloopt.ir import Instruction, Opcode


class PermuteModel(FixedModel):
    """The model of XLA's unit test: permutes and fusions take as long as they have elements."""

    def node_time(self, instruction: Instruction) -> Time:
        if instruction.opcode is Opcode.FUSION:
            kind = instruction.attributes.get("kind")
            if kind == "kLoop":
                return _time(_elements(instruction) or MEDIUM)
            return _time(1000 * _elements(instruction) or HIGH) if kind == "kOutput" else _time(1)
        if instruction.opcode is Opcode.CONVOLUTION:
            return _time(1000 * _elements(instruction) or HIGH)
        return _time(1)

    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        if (
            source.opcode is Opcode.COLLECTIVE_PERMUTE_START
            and target.opcode is Opcode.COLLECTIVE_PERMUTE_DONE
        ):
            return _time(_elements(source.operands[0]))
        return _time(1)


def _profile(entries: Mapping[Any, Any]) -> Profile:
    latencies: dict[str, dict[str, float]] = {}
    for edge, microseconds in entries.get("latencies", {}).items():
        source, target = edge.split("->")
        latencies.setdefault(source, {})[target] = microseconds
    return Profile(entries.get("costs", {}), latencies)


def _time(cycles: float) -> Time:
    return Time(float(cycles), Origin.CONSTANT)


def _elements(instruction: Instruction) -> int:
    """The elements of an array, 0 for a tuple."""
    shape = instruction.shape
    return prod(shape.dimensions) if shape.is_array else 0


def find_model(name: Any) -> LatencyModel:
    """The model that a record's `latency_estimator` names. Raises RecordError."""
    match name:
        case "approximate":
            return FixedModel()
        case "test":
            return PermuteModel()
        case "gpu":
            return GpuFixedModel()
        case {"kind": "profile_guided", "base": base, **entries}:
            return ProfileModel(_profile(entries), find_model(base))
    raise RecordError(f"no meaning is known for latency_estimator {name}")
