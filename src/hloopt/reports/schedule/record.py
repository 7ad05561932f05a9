"""Findings about a schedule as plain data."""

from __future__ import annotations

from typing import Any

from hloopt.cost_models import cost_model_to_json
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.reports.schedule.comparison_record import totals_to_json
from hloopt.reports.schedule.findings import MEMORY_COUNT, ScheduleFindings
from hloopt.reports.schedule.group_sizes import group_size
from hloopt.reports.schedule.timeline import Timeline
from hloopt.reports.sources import StackTable
from hloopt.reports.stage_notices import stage_to_json
from hloopt.simulation import ComputationRun
from hloopt.simulation.hiding import Hiding

_MOST_POINTS = 20_000


def schedule_to_json(findings: ScheduleFindings) -> dict[str, Any]:
    """All of it but when each instruction runs. Times in `unit`, sizes in bytes.

    Times of an operation are those of one run of its computation, which runs `runs` times. The
    memory's timeline is that of `Timeline`: `[time, bytes]` where the number of bytes changes, in
    all trips of loops, or the most of the trips where those are too many.
    """
    simulation, memory = findings.simulation, findings.memory
    stacks = StackTable()
    return {
        "module": findings.module.name,
        "order": findings.order,
        "preset": findings.preset,
        **cost_model_to_json(findings.cost_model),
        **findings.unit.to_json(),
        **totals_to_json(simulation),
        "critical_path": findings.paths.lengths[findings.module.entry],
        "memory": {
            "counted_by": MEMORY_COUNT,
            "peak": memory.peak,
            "arguments": memory.arguments,
            "limit": memory.limit,
            "timeline": Timeline.of(findings).memory(_MOST_POINTS),
        },
        "computations": [
            _computation_to_json(findings, run) for run in simulation.runs.values() if run.runs
        ],
        "operations": [
            _operation_to_json(findings, run, hiding)
            | _origin_to_json(findings, hiding)
            | stacks.source_to_json(findings.lines.of(hiding.operation.start))
            for run, hiding in findings.hidings
        ],
        "stacks": stacks.stacks,
        "stage": stage_to_json(findings.prepared.stage),
        "notices": list(findings.prepared.notices),
        "assumptions": findings.notes,
    }


def _origin_to_json(findings: ScheduleFindings, hiding: Hiding) -> dict[str, Any]:
    """`origin` where what made collectives was asked for: null for what has none."""
    if findings.origins is None:
        return {}
    origin = findings.origins.get(hiding.operation.start.name)
    return {"origin": None if origin is None else origin.to_json()}


def _computation_to_json(findings: ScheduleFindings, run: ComputationRun) -> dict[str, Any]:
    statistics = findings.statistics.get(run.computation)
    return {
        "name": run.computation.name,
        "runs": run.runs,
        "runs_known": run.runs_known,
        "duration": run.duration,
        "exposed": run.exposed,
        "critical_path": findings.paths.lengths[run.computation],
        "on_critical_path": [
            {"instruction": step.instruction.name, "time": step.time}
            for step in findings.paths.steps[run.computation]
        ],
        "memory_peak": max(findings.memory.usage[run.computation], default=0),
        "xla": None
        if statistics is None
        else {
            "total_cycles": statistics.total_cycles,
            "total_wasted_cycles": statistics.total_wasted,
            "wasted_cycles": {kind.value: time for kind, time in statistics.wasted.items()},
        },
    }


def _operation_to_json(
    findings: ScheduleFindings, run: ComputationRun, hiding: Hiding
) -> dict[str, Any]:
    operation = hiding.operation
    ends = operation.stream.spaces
    return {
        "start": operation.start.name,
        "done": operation.done.name,
        "computation": run.computation.name,
        "runs": run.runs,
        "kind": operation.kind.value,
        "stream": operation.stream.name,
        "move": None if ends is None else {"from": ends[0], "to": ends[1]},
        "op_name": op_name_of(operation.start),
        "bytes": operation.size,
        "group_size": group_size(operation, findings.devices),
        "latency": operation.latency,
        "from": operation.origin.value,
        "error_class": operation.origin.error_class.value,
        "issued": operation.issued,
        "begin": operation.begin,
        "finish": operation.finish,
        "hidden": operation.hidden,
        "exposed": operation.exposed,
        "reason": hiding.reason.value,
        "examples": [instruction.name for instruction in hiding.examples],
        "work_under": hiding.under,
        "work_elsewhere": {"stream_free": hiding.free, "stream_full": hiding.taken},
        "under": [
            {"instruction": instruction.name, "time": time}
            for instruction, time in run.work_under(operation)
        ],
    }
