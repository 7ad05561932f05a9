"""Findings about a schedule as a terminal page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hloopt.cost_models import describe
from hloopt.diagnostics import counted
from hloopt.ir import Opcode
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import CycleUnit, human_bytes, middle, more_text, page_width
from hloopt.reports.schedule.chart import legend, peak_label, schedule_chart
from hloopt.reports.schedule.findings import MEMORY_COUNT, ScheduleFindings
from hloopt.reports.schedule.group_sizes import group_size
from hloopt.reports.stage_notices import render_notices
from hloopt.simulation import ComputationRun, Loops
from hloopt.simulation.hiding import Hiding, Reason

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

_MAKESPANS: Mapping[Loops, str] = {
    "trips": "of one run, loops with all their trips",
    "once": "of one run, loops with one trip",
    "cost": "of the entry, loops and calls as the cost model says",
}
_CHARTS = 2
_UNDER = 3
_NAME_WIDTH = 30


def render_schedule(findings: ScheduleFindings, console: Console, *, top: int = 10) -> None:
    """Print totals, pictures, kinds of operations, and the `top` operations most exposed.

    Shares of a time that is in doubt are left out.
    """
    from rich.text import Text

    width = page_width(console)
    title = Text.assemble(
        "Schedule of ",
        (findings.module.name, "bold"),
        f", order: {findings.order}\nby {describe(findings.cost_model)}, preset {findings.preset}",
    )
    console.print(title, width=width)
    render_notices(findings.prepared.notices, console, width)
    console.print(_totals(findings), width=width)
    for run in _charted(findings):
        console.print()
        console.print(_chart_title(findings, run), width=width)
        usage = findings.memory.usage[run.computation]
        console.print(schedule_chart(run, usage, findings.unit, width))
    console.print(legend(), width=width)
    if findings.hidings:
        console.print()
        console.print(_kinds_table(findings), width=width)
        console.print()
        console.print(_operations_table(findings, top), width=width)
    for note in findings.notes:
        print_footnote(console, note, width=width)


def _totals(findings: ScheduleFindings) -> ReportTable:
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    simulation, unit, memory = findings.simulation, findings.unit, findings.memory
    makespan, exposed = simulation.makespan, simulation.exposed
    table = ReportTable(heads=False)
    table.add_column("field", style="bold")
    table.add_column("figure", justify="right", stays=True)
    table.add_column("meaning", style="dim", wraps=True)
    table.add_row("makespan", unit.label(makespan), _MAKESPANS[simulation.loops])
    part = "" if findings.prepared.doubts else f"{share(exposed, makespan)} of it "
    waiting = f"{part}waits for operations"
    table.add_row("exposed", Text(unit.label(exposed), style=bad(unit, exposed)), waiting)
    path = findings.paths.lengths[findings.module.entry]
    table.add_row("critical path", unit.label(path), "what dependencies alone would take")
    table.add_row(
        "peak",
        human_bytes(memory.peak),
        f"as {MEMORY_COUNT} counts, {human_bytes(memory.arguments)} of it arguments",
    )
    if memory.limit is not None and not findings.prepared.doubts:
        room = memory.limit - memory.peak
        text = f"{human_bytes(abs(room))} {'left' if room >= 0 else 'too little'} by this count"
        table.add_row("limit", human_bytes(memory.limit), text)
    xla = findings.statistics.get(findings.module.entry)
    if xla is not None:
        table.add_row(
            "XLA's figures",
            unit.text(xla.total_cycles),
            f"of the entry, {unit.text(xla.total_wasted)} wasted; no trips of loops",
        )
    return table


def bad(unit: CycleUnit, exposed: float) -> str:
    """The style of a time that something waits; abstract units are neither good nor bad."""
    return "red" if exposed and unit.seconds is not None else ""


def share(part: float, whole: float) -> str:
    """`12.5%`."""
    return f"{part / whole:.1%}" if whole else "0%"


# -- pictures -------------------------------------------------------------------------------------


def _charted(findings: ScheduleFindings) -> list[ComputationRun]:
    """The runs worth a picture: where most time is exposed; the entry where nothing is."""
    runs = [run for run in findings.simulation.runs.values() if run.runs and run.operations]
    runs.sort(key=lambda run: (-run.exposed * run.runs, -run.duration * run.runs))
    return runs[:_CHARTS] or [findings.simulation.entry]


def _chart_title(findings: ScheduleFindings, run: ComputationRun) -> Text:
    from rich.text import Text

    times = "" if run.runs == 1 else f", one of {run.runs:,} runs"
    peak = peak_label(findings.memory.usage[run.computation], findings.memory.arguments)
    label = findings.unit.label
    is_known = not findings.prepared.doubts
    exposed = share(run.exposed, run.duration) if is_known else label(run.exposed)
    return Text.assemble(
        (f"%{run.computation.name}", "bold"),
        f"{times}: {label(run.duration)}, {exposed} exposed, memory up to {peak}",
    )


# -- kinds ----------------------------------------------------------------------------------------


def _kinds_table(findings: ScheduleFindings) -> ReportTable:
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    totals: dict[Opcode, list[float]] = {}
    for run, hiding in findings.hidings:
        operation = hiding.operation
        total = totals.setdefault(operation.kind, [0.0] * 5)
        figures = (1, operation.size, operation.latency, operation.hidden, operation.exposed)
        for column, figure in enumerate(figures):
            total[column] += figure * run.runs
    table = ReportTable()
    table.add_column("all runs", style="bold")
    for name in ("number", "bytes", "latency", "hidden", "exposed", "share"):
        is_shown = name != "share" or not findings.prepared.doubts
        table.add_column(name, justify="right", stays=name == "exposed", shown=is_shown)
    unit, makespan = findings.unit, findings.simulation.makespan
    for kind, (count, size, latency, hidden, exposed) in sorted(
        totals.items(), key=lambda item: (-item[1][4], item[0])
    ):
        table.add_row(
            kind.value,
            f"{int(count):,}",
            human_bytes(int(size)),
            unit.text(latency),
            unit.text(hidden),
            Text(unit.text(exposed), style=bad(unit, exposed)),
            share(exposed, makespan),
        )
    return table


# -- operations -----------------------------------------------------------------------------------


def _operations_table(findings: ScheduleFindings, top: int) -> ReportTable:
    """Each operation: a line of figures, then why not more is hidden, and what runs under it."""
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    shown, rest = findings.hidings[:top], findings.hidings[top:]
    has_loops = any(run.runs != 1 for run, _ in findings.hidings)
    count = counted(len(findings.hidings), "operation")
    first = (
        "most exposed in all runs first; other times" if has_loops else "most exposed first; times"
    )
    table = ReportTable(f"{count}, {first} of one run", gap=2)
    heads = ("exposed", "hidden", "latency", "runs", "bytes", "on")
    for name in ("in all", *heads) if has_loops else heads:
        table.add_column(name, justify="right")
    table.add_column("operation", style="bold", cut=middle)
    for run, hiding in shown:
        unit, operation = findings.unit, hiding.operation
        group = group_size(operation, findings.devices)
        in_all = [unit.text(operation.exposed * run.runs)] if has_loops else []
        table.add_row(
            *(Text(time, bad(unit, operation.exposed)) for time in in_all),
            Text(unit.text(operation.exposed), bad(unit, operation.exposed)),
            unit.text(operation.hidden),
            unit.text(operation.latency),
            f"{run.runs:,}",
            human_bytes(operation.size),
            "-" if group is None else str(group),
            f"%{operation.start.name}",
        )
        for line in _explanation(findings, run, hiding):
            table.add_line(Text(" " * _INDENT + line, "dim"))
    if rest:
        table.add_line(Text(more_text(len(rest), _ROOM_FOR_MORE), "dim"))
    return table


_INDENT = 10
_ROOM_FOR_MORE = 60


def _explanation(findings: ScheduleFindings, run: ComputationRun, hiding: Hiding) -> list[str]:
    lines = []
    origin = (findings.origins or {}).get(hiding.operation.start.name)
    if origin is not None:
        lines.append(f"made by {origin.text(_short)}")
    if hiding.operation.stream.spaces is not None:
        lines.append("moves from {} to {}".format(*hiding.operation.stream.spaces))
    if hiding.reason is not Reason.HIDDEN:
        lines.append(why(findings, hiding))
    work = run.work_under(hiding.operation, len(run.order))
    if work:
        shown = ", ".join(
            f"{_name(instruction.name)} {findings.unit.text(time)}"
            for instruction, time in work[:_UNDER]
        )
        more = f", {len(work) - _UNDER:,} more" if len(work) > _UNDER else ""
        lines.append(f"under it: {shown}{more}")
    elif not hiding.operation.is_synchronous:
        lines.append("nothing runs under it")
    return lines


def why(findings: ScheduleFindings, hiding: Hiding) -> str:
    """The reason why an operation is not better hidden, in a sentence."""
    unit, operation = findings.unit, hiding.operation
    names = [_name(instruction.name) for instruction in hiding.examples]
    match hiding.reason:
        case Reason.SYNCHRONOUS:
            return "synchronous: the program waits for all of it at once"
        case Reason.DEPENDENCY:
            feeds = f"; it follows {names[0]}" if names else ""
            needs = f", {names[1]} needs it" if len(names) > 1 else ""
            return f"dependency: all other work feeds or needs it{feeds}{needs}"
        case Reason.NOTHING_LEFT:
            return (
                f"nothing left to run: the {unit.label(hiding.under)} of work that neither feeds "
                "nor needs it run under it"
            )
        case Reason.OVERLAP_LIMIT if operation.queued > hiding.taken or not names:
            return (
                f"overlap limit: it waits {unit.label(operation.queued)} for "
                f"'{operation.stream.name}', which takes {operation.stream.limit} at a time"
            )
        case Reason.OVERLAP_LIMIT:
            return (
                f"overlap limit: {unit.label(hiding.taken)} of other work, as {names[0]}, run "
                f"while '{operation.stream.name}' is full ({operation.stream.limit} at a time)"
            )
        case Reason.MEMORY_LIMIT:
            return (
                f"memory limit: {unit.label(hiding.free)} of other work would do, but there is no "
                f"room to be in flight during {names[0]}"
            )
        case Reason.ORDER:
            return (
                f"order: {unit.label(hiding.free)} of other work could run under it, "
                f"{names[0]} is nearest"
            )
    return "hidden"


def _name(name: str) -> str:
    return "%" + _short(name)


def _short(name: str) -> str:
    return middle(name, _NAME_WIDTH)
