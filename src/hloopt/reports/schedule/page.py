"""A schedule as a page of its own: what runs when, in lanes, and a table of what waits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any

from hloopt.cost_models import describe
from hloopt.ir import Opcode
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.reports.console.units import human_bytes
from hloopt.reports.html.columns import (
    Criterion,
    Grouping,
    TextColumn,
    packed_rows,
    scope_groupings,
    text_groupings,
)
from hloopt.reports.html.page import Column, data_table, facts_list, html_page, notes_list
from hloopt.reports.look import WORK
from hloopt.reports.schedule.findings import MEMORY_COUNT, ScheduleFindings
from hloopt.reports.schedule.frames import Call, Frame, Slice
from hloopt.reports.schedule.group_sizes import group_size
from hloopt.reports.schedule.terminal import share, why
from hloopt.reports.schedule.timeline import Timeline
from hloopt.reports.work_kinds import WorkKind, work_kind
from hloopt.simulation import ComputationRun, Operation
from hloopt.simulation.hiding import Hiding

_MOST_GROUPS = 8
_DEPTH = 3
_NUMBERS = re.compile(r"[.\d]+")


def schedule_page(findings: ScheduleFindings, timeline: Timeline) -> str:
    """A whole HTML document. Linear in the timeline."""
    title = f"Schedule of {findings.module.name}"
    table = _table(has_origins=findings.origins is not None)
    body = facts_list(_facts(findings)) + _BODY + table + notes_list(findings.notes)
    data = packed(findings, timeline)
    notices = findings.prepared.notices
    return html_page(title, ("canvas", "schedule"), body, data, notices=notices)


def _facts(findings: ScheduleFindings) -> Iterator[tuple[str, str]]:
    simulation, label = findings.simulation, findings.unit.label
    yield "makespan", label(simulation.makespan)
    exposed = simulation.exposed
    yield "exposed", f"{label(exposed)} ({share(exposed, simulation.makespan)})"
    yield "critical path", label(findings.paths.lengths[findings.module.entry])
    yield "peak", f"{human_bytes(findings.memory.peak)}, as {MEMORY_COUNT} counts"
    limit = _limit(findings)
    if limit is not None:
        yield "limit", human_bytes(limit)
    yield "operations", f"{len(findings.hidings):,}"
    yield "order", findings.order
    yield "times", describe(findings.cost_model)
    yield "preset", findings.preset


def _limit(findings: ScheduleFindings) -> int | None:
    """The memory there is; None where the module allows no comparison with it."""
    return None if findings.prepared.doubts else findings.memory.limit


def packed(findings: ScheduleFindings, timeline: Timeline) -> dict[str, Any]:
    """The data of the page's script: computations with their slices, and a list of operations.

    A slice is work, waiting, a call, or an operation in flight: `kind` has the numbers of `_KINDS`.
    Times are those since the computation began; `steps` are begins and ends, and times of memory.
    """
    frames = list(timeline.frames.values())
    numbers = {hiding.operation: n for n, (_, hiding) in enumerate(findings.hidings)}
    frame_numbers = {frame: n for n, frame in enumerate(frames)}
    slices = [piece for frame in frames for piece in frame.slices]
    texts = {name: TextColumn.of(map(text, slices)) for name, text in _TEXTS.items()}
    texts["source"] = TextColumn.of(findings.lines.of(p.instruction).label for p in slices)
    weights = [  # the time of work in all runs
        (piece.end - piece.begin) * frame.weight if _kind(piece) == "work" else 0.0
        for frame in frames
        for piece in frame.slices
    ]
    kinds = _kinds(slices, texts["work"], weights)
    groupings = (
        *text_groupings(texts, weights, _CRITERIA, most=_MOST_GROUPS),
        *scope_groupings(texts["op_name"], weights, depth=_DEPTH, most=_MOST_GROUPS),
    )
    return {
        "secondsPerCycle": findings.unit.seconds,
        "makespan": _rounded(findings.simulation.makespan),
        "lanes": timeline.lanes,
        "mainLanes": 1 + max(frame.level for frame in frames),
        "slices": {
            "steps": _steps(time for piece in slices for time in (piece.begin, piece.end)),
            "kind": "".join(str(_KINDS.index(_kind(piece))) for piece in slices),
            "operation": [
                -1 if piece.operation is None else numbers[piece.operation] for piece in slices
            ],
            **{name: column.packed() for name, column in texts.items()},
        },
        "frames": _frames(frames, frame_numbers),
        "groupings": [
            {**kinds.packed(), "sums": _sums(kinds), "fills": _fills(kinds)},
            *({**grouping.packed(), "sums": _sums(grouping)} for grouping in groupings),
        ],
        "waiting": _rounded(
            sum(
                (p.end - p.begin) * frame.weight
                for frame in frames
                for p in frame.slices
                if p.is_wait
            )
        ),
        "arguments": findings.memory.arguments,
        "peak": findings.memory.peak,
        "limit": _limit(findings),
        "operations": packed_rows(
            [_operation(findings, run, hiding, timeline) for run, hiding in findings.hidings]
        ),
    }


def _kinds(slices: Sequence[Slice], works: TextColumn, weights: Sequence[float]) -> Grouping:
    """Work and what is in flight by the kinds of instructions, in the order of their looks."""
    shown = {work_kind(p.instruction) for p in slices if _kind(p) in ("work", "flight")}
    labels = [kind.value for kind in WORK if kind in shown]
    sums = dict(zip(works.numbers, works.weights(weights), strict=True))
    groups = [labels.index(text) if text in labels else 0 for text in works.numbers]
    times = [sums[label] for label in labels]
    return Grouping("kind of work", "work", labels, has_rest=False, sums=times, group_of=groups)


def _sums(grouping: Grouping) -> list[float]:
    return [_rounded(time) for time in grouping.sums]


def _fills(kinds: Grouping) -> list[str]:
    """The colours of kinds of work, which are those of `hloopt view`."""
    return [WORK[WorkKind(label)].fill for label in kinds.labels]


_KINDS = ("work", "wait", "call", "flight")


def _kind(piece: Slice) -> str:
    if piece.is_wait:
        return "wait"
    if piece.operation is not None:
        return "flight"
    return "work" if piece.call is None else "call"


_TEXTS: dict[str, Callable[[Slice], str]] = {
    "name": lambda piece: piece.instruction.name,
    "opcode": lambda piece: piece.instruction.opcode.value,
    "op_name": lambda piece: op_name_of(piece.instruction),
    "computation": lambda piece: piece.instruction.parent.name,
    "work": lambda piece: work_kind(piece.instruction).value,
}


def _frames(frames: Sequence[Frame], numbers: dict[Frame, int]) -> list[dict[str, Any]]:
    """Computations, callers first. `lanes` says which slices are in which lane."""
    result = []
    offset = 0
    for frame in frames:
        lanes = []
        calls: dict[Call, int] = {}
        for number, piece in enumerate(frame.slices, offset):
            if piece.call is not None:
                calls[piece.call] = number
        for lane, pieces in groupby(frame.slices, key=attrgetter("lane")):
            end = offset + sum(1 for _ in pieces)
            lanes.append([lane, offset, end])
            offset = end
        result.append(
            {
                "name": frame.run.computation.name,
                "runs": frame.run.runs,
                "duration": _rounded(frame.run.duration),
                "first": _rounded(frame.first),
                "level": frame.level,
                "lanes": lanes,
                "calls": [_call(call, slot, numbers) for call, slot in calls.items()],
                "memory": {
                    "steps": _steps(time for time, _ in frame.memory),
                    "bytes": [size for _, size in frame.memory],
                },
                "peak": frame.peak,
            }
        )
    return result


def _call(call: Call, slot: int, numbers: dict[Frame, int]) -> dict[str, Any]:
    return {
        "slice": slot,
        "begin": _rounded(call.begin),
        "end": _rounded(call.end),
        "period": call.period,
        "scale": call.scale,
        "isLoop": call.instruction.opcode is Opcode.WHILE,
        "trips": call.trips,
        "frames": [[numbers[frame], times] for frame, times in call.frames],
    }


_CRITERIA = (
    Criterion("name but for numbers", "name", lambda name: _NUMBERS.sub("", name)),
    Criterion("opcode", "opcode"),
    Criterion("computation", "computation"),
    Criterion("source", "source"),
)
"""The criteria that tell work of the main stream apart, beside scopes."""


def _operation(
    findings: ScheduleFindings, run: ComputationRun, hiding: Hiding, timeline: Timeline
) -> dict[str, Any]:
    operation = hiding.operation
    frame = timeline.frames.get(run.computation)
    return {
        "start": operation.start.name,
        "done": operation.done.name,
        "computation": run.computation.name,
        "kind": operation.kind.value
        if operation.stream.spaces is None
        else f"{operation.kind.value}, {operation.stream.name}",
        "opName": op_name_of(operation.start),
        "source": findings.lines.of(operation.start).label,
        **_made_by(findings, operation),
        "runs": run.runs,
        "bytes": operation.size,
        "group": group_size(operation, findings.devices),
        "latency": _rounded(operation.latency),
        "hidden": _rounded(operation.hidden),
        "exposed": _rounded(operation.exposed),
        "at": None if frame is None else _span(operation, frame.first),
        "why": why(findings, hiding),
        "under": [
            [instruction.name, _rounded(time)] for instruction, time in run.work_under(operation, 5)
        ],
    }


def _made_by(findings: ScheduleFindings, operation: Operation) -> dict[str, str]:
    """`madeBy` where origins of collectives were asked for: empty for what has none."""
    if findings.origins is None:
        return {}
    origin = findings.origins.get(operation.start.name)
    return {"madeBy": "" if origin is None else origin.text()}


def _span(operation: Operation, offset: float) -> list[float]:
    """The times at which it begins, is waited for, and ends, the first time that it runs."""
    needed = min(operation.needed, operation.finish)
    return [_rounded(offset + time) for time in (operation.begin, needed, operation.finish)]


def _rounded(time: float) -> float:
    """A thousandth of a cycle is enough for a picture."""
    return round(time, 3)


def _steps(times: Iterable[float]) -> list[float]:
    """Differences between times, each from the sum of those before: short, and no error adds up."""
    result = []
    thousandths = 0
    for time in times:
        step = round(time * 1000) - thousandths
        thousandths += step
        result.append(step / 1000 if step % 1000 else step // 1000)
    return result


def _table(*, has_origins: bool) -> str:
    """The table of operations, with a column for what made collectives where that is known."""
    return data_table(
        "operations",
        (
            Column("exposed in all", "number"),
            Column("exposed", "number"),
            Column("hidden", "number"),
            Column("latency", "number"),
            Column("runs", "number"),
            Column("bytes", "number"),
            Column("devices", "number"),
            Column("kind"),
            Column("start", "name"),
            Column("computation", "name"),
            *((Column("made by", "text"),) if has_origins else ()),
            Column("why not more is hidden", "text"),
        ),
    )


_BODY = """<div class="bar">
<input id="filter" type="search" placeholder="filter: name, op_name, opcode, source"
  aria-label="filter">
<label>work by <select id="by"></select></label>
<label>go to <select id="computation"></select></label>
<button id="worst">most exposed</button> <button id="all">whole run</button></div>
<h2>Streams over time</h2>
<ul class="legend" id="lanesLegend"></ul>
<canvas id="lanes" aria-label="what runs on each stream over time"></canvas>
<h2>Memory over time</h2>
<ul class="legend" id="memoryLegend"></ul>
<canvas id="memory" aria-label="memory in use over time"></canvas>
<p class="hint">Wheel or + and -: zoom. Drag: move. Click: select. Double click: whole run. Arrows
move a pointer, Enter clicks. Trips of a loop that are too short to be told apart are drawn
together: the share of the height is the share of the time.</p>
<h2 id="selected"></h2>
<p id="why"></p>
<h2 id="operations">Operations, most exposed in all runs first; other times of one run</h2>
"""
