"""A schedule as a trace: for Perfetto (ui.perfetto.dev) and chrome://tracing."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any

from hloopt.ir import Opcode
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.reports.schedule.findings import ScheduleFindings
from hloopt.reports.schedule.frames import Slice
from hloopt.reports.schedule.timeline import Rest, Timeline, Visit
from hloopt.simulation import Operation

_PROCESS = 1


def schedule_trace(findings: ScheduleFindings, timeline: Timeline) -> dict[str, Any]:
    """The trace-event format of Chrome: a thread per lane, memory as a counter, and an arrow from
    each start to what waits for it. A microsecond per abstract cycle.

    All trips of loops, up to `MOST_SLICES`; of more the first, and a slice for the others. Linear
    in that.
    """
    seconds = findings.unit.seconds
    scale = 1.0 if seconds is None else seconds * 1e6
    unit = ", 1 us per cycle" if seconds is None else ""
    events: list[dict[str, Any]] = [_named("process_name", 0, findings.module.name + unit)]
    for lane, name in enumerate(timeline.lanes):
        events.append(_named("thread_name", lane, name))
        events.append(_event("M", "thread_sort_index", lane, 0.0, args={"sort_index": lane}))
    arrows = count()
    for visit in timeline.visits():
        if isinstance(visit, Rest):
            events += _rest_events(visit, scale)
        else:
            events += _visit_events(findings, visit, scale, arrows)
    for time, size in timeline.memory():
        events.append(_event("C", "memory (bytes)", 0, time * scale, args={"in use": size}))
    return {"traceEvents": events, "displayTimeUnit": "ns"}


def _visit_events(
    findings: ScheduleFindings, visit: Visit, scale: float, arrows: Iterator[int]
) -> Iterator[dict[str, Any]]:
    """The slices of one run of a computation, and the arrows between them."""
    numbers: dict[Operation, int] = {}
    for piece in visit.frame.slices:
        begin = (visit.begin + piece.begin * visit.scale) * scale
        duration = (piece.end - piece.begin) * visit.scale * scale
        yield _slice_event(findings, piece, begin, duration)
        if piece.operation is not None and piece.operation.exposed > 0:
            if piece.operation not in numbers:
                numbers[piece.operation] = next(arrows)
            end = {"ph": "f", "bp": "e"} if piece.is_wait else {"ph": "s"}
            arrow = _event("", "waited for", piece.lane, begin, cat="operation")
            yield arrow | end | {"id": numbers[piece.operation]}


def _rest_events(rest: Rest, scale: float) -> Iterator[dict[str, Any]]:
    """A slice in each lane that the trips left out have slices in."""
    name = f"%{rest.call.instruction.name}"
    if rest.call.instruction.opcode is Opcode.WHILE:
        name = f"{rest.trips:,} more {'trip' if rest.trips == 1 else 'trips'} of {name}"
    begin, duration = rest.begin * scale, (rest.end - rest.begin) * scale
    for lane in sorted({lane for frame, _ in rest.call.frames for lane in frame.lanes}):
        yield _event("X", name, lane, begin, dur=duration, cat="trips")


def _slice_event(
    findings: ScheduleFindings, piece: Slice, begin: float, duration: float
) -> dict[str, Any]:
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
        if operation.stream.spaces is not None:
            arguments["move"] = operation.stream.name
    kind = "wait" if piece.is_wait else "operation" if operation else "instruction"
    return _event("X", name, piece.lane, begin, dur=duration, cat=kind, args=arguments)


def _event(phase: str, name: str, thread: int, time: float, **more: Any) -> dict[str, Any]:
    return {"ph": phase, "name": name, "ts": time, "pid": _PROCESS, "tid": thread, **more}


def _named(what: str, thread: int, name: str) -> dict[str, Any]:
    return _event("M", what, thread, 0.0, args={"name": name})
