"""A schedule as a trace: for Perfetto (ui.perfetto.dev) and chrome://tracing."""

from __future__ import annotations

from typing import Any

from hloopt.ir.source_stacks import op_name_of
from hloopt.reports.schedule_findings import ScheduleFindings
from hloopt.reports.schedule_timeline import Slice, Timeline
from hloopt.simulation import Operation

_PROCESS = 1


def schedule_trace(findings: ScheduleFindings, timeline: Timeline) -> dict[str, Any]:
    """The trace-event format of Chrome: a thread per lane, memory as a counter, and an arrow from
    each start to what waits for it. A microsecond per abstract cycle. Linear.
    """
    seconds = findings.unit.seconds
    scale = 1.0 if seconds is None else seconds * 1e6
    unit = ", 1 us per cycle" if seconds is None else ""
    events: list[dict[str, Any]] = [_named("process_name", 0, findings.module.name + unit)]
    for lane, name in enumerate(timeline.lanes):
        events.append(_named("thread_name", lane, name))
        events.append(_event("M", "thread_sort_index", lane, 0.0, args={"sort_index": lane}))
    arrows: dict[Operation, int] = {}
    for piece in timeline.slices:
        events.append(_slice_event(findings, piece, scale))
        if piece.operation is not None and piece.operation.exposed > 0:
            number = arrows.setdefault(piece.operation, len(arrows))
            end = {"ph": "f", "bp": "e"} if piece.is_wait else {"ph": "s"}
            arrow = _event("", "waited for", piece.lane, piece.begin * scale, cat="operation")
            events.append(arrow | end | {"id": number})
    for time, size in timeline.memory:
        events.append(_event("C", "memory (bytes)", 0, time * scale, args={"in use": size}))
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _slice_event(findings: ScheduleFindings, piece: Slice, scale: float) -> dict[str, Any]:
    instruction, operation = piece.instruction, piece.operation
    name = f"wait for {instruction.name}" if piece.is_wait else instruction.name
    arguments: dict[str, Any] = {
        "opcode": instruction.opcode.value,
        "computation": instruction.parent.name,
    }
    if op_name := op_name_of(instruction):
        arguments["op_name"] = op_name
    if source := findings.lines.of(instruction).label:
        arguments["source"] = source
    if operation is not None:
        arguments |= {
            "bytes": operation.size,
            "latency": findings.unit.label(operation.latency),
            "hidden": findings.unit.label(operation.hidden),
            "exposed": findings.unit.label(operation.exposed),
        }
    return _event(
        "X",
        name,
        piece.lane,
        piece.begin * scale,
        dur=(piece.end - piece.begin) * scale,
        cat="wait" if piece.is_wait else "operation" if operation else "instruction",
        args=arguments,
    )


def _event(phase: str, name: str, thread: int, time: float, **more: Any) -> dict[str, Any]:
    return {"ph": phase, "name": name, "ts": time, "pid": _PROCESS, "tid": thread, **more}


def _named(what: str, thread: int, name: str) -> dict[str, Any]:
    return _event("M", what, thread, 0.0, args={"name": name})
