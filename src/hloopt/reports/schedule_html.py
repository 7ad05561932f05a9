"""A schedule as a page of its own: what runs when, in lanes, and a table of what waits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hloopt.cost_models import describe
from hloopt.ir.source_stacks import op_name_of
from hloopt.reports.group_sizes import group_size
from hloopt.reports.page import facts_list, html_page, notes_list
from hloopt.reports.schedule_findings import ScheduleFindings
from hloopt.reports.schedule_text import share, why
from hloopt.reports.schedule_timeline import Timeline
from hloopt.reports.units import human_bytes
from hloopt.simulation import ComputationRun, Operation
from hloopt.simulation.hiding import Hiding


def schedule_page(findings: ScheduleFindings, timeline: Timeline) -> str:
    """A whole HTML document. Linear in the timeline."""
    title = f"Schedule of {findings.module.name}"
    body = facts_list(_facts(findings)) + _BODY + notes_list(findings.notes)
    return html_page(title, ("canvas", "schedule"), body, packed(findings, timeline))


def _facts(findings: ScheduleFindings) -> Iterator[tuple[str, str]]:
    simulation, label = findings.simulation, findings.unit.label
    yield "makespan", label(simulation.makespan)
    exposed = simulation.exposed
    yield "exposed", f"{label(exposed)} ({share(exposed, simulation.makespan)})"
    yield "critical path", label(findings.paths.lengths[findings.module.entry])
    yield "peak", human_bytes(findings.memory.peak)
    if findings.memory.limit is not None:
        yield "limit", human_bytes(findings.memory.limit)
    yield "operations", f"{len(findings.hidings):,}"
    yield "order", findings.order
    yield "times", describe(findings.cost_model)
    yield "preset", findings.preset


class _Texts:
    """Each text once, by its number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def packed(findings: ScheduleFindings, timeline: Timeline) -> dict[str, Any]:
    """What the page's script reads: columns of slices, and a list of operations."""
    text = _Texts()
    numbers = {hiding.operation: n for n, (_, hiding) in enumerate(findings.hidings)}
    slices = timeline.slices
    instructions = [piece.instruction for piece in slices]
    columns: dict[str, list[Any]] = {
        "lane": [piece.lane for piece in slices],
        "begin": [_rounded(piece.begin) for piece in slices],
        "end": [_rounded(piece.end) for piece in slices],
        "wait": [int(piece.is_wait) for piece in slices],
        "operation": [
            -1 if piece.operation is None else numbers[piece.operation] for piece in slices
        ],
        "name": [text(instruction.name) for instruction in instructions],
        "opcode": [text(instruction.opcode.value) for instruction in instructions],
        "computation": [text(instruction.parent.name) for instruction in instructions],
        "op_name": [text(op_name_of(instruction)) for instruction in instructions],
        "source": [text(findings.lines.of(instruction).label) for instruction in instructions],
    }
    return {
        "secondsPerCycle": findings.unit.seconds,
        "makespan": _rounded(findings.simulation.makespan),
        "lanes": timeline.lanes,
        "slices": columns,
        "memory": [[_rounded(time), size] for time, size in timeline.memory],
        "peak": findings.memory.peak,
        "limit": findings.memory.limit,
        "operations": [
            _operation(findings, run, hiding, timeline) for run, hiding in findings.hidings
        ],
        "computations": [
            {
                "name": computation.name,
                "begin": _rounded(begin),
                "end": _rounded(end),
                "runs": findings.simulation.runs[computation].runs,
            }
            for computation, (begin, end) in timeline.spans.items()
        ],
        "texts": list(text.numbers),
    }


def _operation(
    findings: ScheduleFindings, run: ComputationRun, hiding: Hiding, timeline: Timeline
) -> dict[str, Any]:
    operation = hiding.operation
    offset = timeline.spans.get(run.computation, (None, 0.0))[0]
    return {
        "start": operation.start.name,
        "done": operation.done.name,
        "computation": run.computation.name,
        "kind": operation.kind.value,
        "opName": op_name_of(operation.start),
        "source": findings.lines.of(operation.start).label,
        "runs": run.runs,
        "bytes": operation.size,
        "group": group_size(operation, findings.devices),
        "latency": _rounded(operation.latency),
        "hidden": _rounded(operation.hidden),
        "exposed": _rounded(operation.exposed),
        "at": None if offset is None else _span(operation, offset),
        "why": why(findings, hiding),
        "under": [
            [instruction.name, _rounded(time)] for instruction, time in run.work_under(operation, 5)
        ],
    }


def _span(operation: Operation, offset: float) -> list[float]:
    """When it begins, is waited for, and ends."""
    needed = min(operation.needed, operation.finish)
    return [_rounded(offset + time) for time in (operation.begin, needed, operation.finish)]


def _rounded(time: float) -> float:
    """A thousandth of a cycle is enough for a picture."""
    return round(time, 3)


_BODY = """<div class="bar">
<input id="filter" type="search" placeholder="filter: name, op_name, opcode" aria-label="filter">
<label>color <select id="color"><option value="name">name but for numbers</option>
<option value="opcode">opcode</option><option value="scope">scope</option>
<option value="computation">computation</option></select>
</label>
<label>go to <select id="computation"></select></label>
<button id="worst">most exposed</button> <button id="all">whole run</button>
<span id="legend"></span></div>
<h2>Streams over time</h2>
<canvas id="lanes" aria-label="what runs on each stream over time"></canvas>
<h2>Memory over time</h2>
<canvas id="memory" aria-label="memory in use over time"></canvas>
<p class="hint">Wheel: zoom. Drag: move. Click: select. Double click: whole run. A computation is
drawn once, where it is called first: of a loop the first trip.</p>
<h2 id="selected"></h2>
<p id="why"></p>
<h2>Operations, most exposed first</h2>
<table><thead><tr><th>exposed</th><th>hidden</th><th>latency</th><th>runs</th><th>bytes</th>
<th>on</th><th>kind</th><th>start</th><th>computation</th><th>why not more is hidden</th></tr>
</thead><tbody id="rows"></tbody></table>
"""
