"""The report on while loops: trips and where their number comes from, state, collectives."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from hloopt.analysis.calls import callees_first
from hloopt.analysis.loops.trip_count import LoopTrips, loop_trips
from hloopt.analysis.source_lines import SourceLines
from hloopt.diagnostics import counted
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.opcode import COLLECTIVES
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import human_bytes, middle, page_width, tail

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable


@dataclass(frozen=True, slots=True)
class Counter:
    """The comparison in a loop's condition: it goes on while `element DIRECTION limit`."""

    element: int
    init: int | None
    step: int | None
    direction: str
    limit: int | None
    """Less what is added to the element before it is compared. None where not constant, as the
    others."""


@dataclass(frozen=True, slots=True)
class LoopReport:
    """One while loop."""

    name: str
    op_name: str
    source_line: str
    """The line of the program: `model.py:12`."""
    computation: str
    depth: int
    """The number of loops it is in."""
    trips: int | None
    source: str
    """The origin of `trips`: "computed" from counter and limit, "tried" by running the counter,
    "stated" as known_trip_count, or "unknown"."""
    stated: int | None
    """The known_trip_count of the backend_config."""
    disagrees: bool
    """Whether that is another number than body and condition tell."""
    reason: str
    """The reason why body and condition do not tell the trips; else empty."""
    counter: Counter | None
    state_bytes: int
    body: str
    instructions: int
    """In the body, without what it calls."""
    collectives: dict[str, int]
    """Collectives of one trip by opcode, with calls but without loops inside."""


def analyze_loops(module: Module) -> list[LoopReport]:
    """All while loops, each before those in it. O(instructions), beside the trip counts."""
    order = list(reversed(callees_first(module)))
    around: dict[Computation, Instruction | None] = {}
    for computation in order:
        around.setdefault(computation, None)
        for caller in (i for i in computation.instructions if i.called):
            is_loop = caller.opcode is Opcode.WHILE
            for callee in caller.called:
                around.setdefault(callee, caller if is_loop else around[computation])
    inner: dict[Instruction | None, list[Instruction]] = {}
    for computation in order:
        for instruction in computation.instructions:
            if instruction.opcode is Opcode.WHILE:
                inner.setdefault(around[computation], []).append(instruction)
    collectives = _collectives(order)
    lines = SourceLines(module)
    reports: list[LoopReport] = []
    stack = [(loop, 0) for loop in reversed(inner.get(None, ()))]
    while stack:
        loop, depth = stack.pop()
        line = lines.of(loop).label
        reports.append(_report(loop, line, depth, collectives[loop.called[0]]))
        stack += [(other, depth + 1) for other in reversed(inner.get(loop, ()))]
    return reports


def _report(
    loop: Instruction, source_line: str, depth: int, collectives: dict[str, int]
) -> LoopReport:
    trips = loop_trips(loop)
    return LoopReport(
        name=loop.name,
        op_name=op_name_of(loop),
        source_line=source_line,
        computation=loop.parent.name,
        depth=depth,
        trips=trips.count,
        source=_source(trips),
        stated=trips.stated,
        disagrees=trips.disagrees,
        reason=trips.reason,
        counter=_counter(trips),
        state_bytes=sum(shape_bytes(leaf) for leaf in loop.shape.leaves()),
        body=loop.called[0].name,
        instructions=len(loop.called[0]),
        collectives=collectives,
    )


def _source(trips: LoopTrips) -> str:
    if trips.computed is not None:
        return "tried" if trips.is_tried else "computed"
    return "unknown" if trips.stated is None else "stated"


def _counter(trips: LoopTrips) -> Counter | None:
    comparison, variable = trips.comparison, trips.variable
    if comparison is None:
        return None
    limit = None if comparison.limit is None else comparison.limit - comparison.offset
    init, step = (None, None) if variable is None else (variable.init, variable.step)
    return Counter(comparison.element, init, step, comparison.direction, limit)


def _collectives(callers_first: list[Computation]) -> dict[Computation, dict[str, int]]:
    """Collectives that a run of each computation starts, those of loops in it left aside."""
    found: dict[Computation, dict[str, int]] = {}
    for computation in reversed(callers_first):
        counts = found[computation] = {}
        for instruction in computation.instructions:
            opcode = instruction.opcode
            if opcode in COLLECTIVES and not opcode.endswith("-done"):
                counts[opcode.value] = counts.get(opcode.value, 0) + 1
            elif instruction.called and opcode is not Opcode.WHILE:
                for callee in instruction.called:
                    for name, count in found[callee].items():
                        counts[name] = counts.get(name, 0) + count
    return found


# -- terminal -----------------------------------------------------------------------------------

_SIGNS = {"LT": "<", "LE": "≤", "GT": ">", "GE": "≥", "EQ": "=", "NE": "≠"}
_SOURCE_STYLES = {"unknown": "yellow", "stated": "cyan"}


def render_loops(reports: list[LoopReport], console: Console) -> None:
    """Print a table of loops; below, what disagrees, and why trips are not known."""
    from rich.text import Text

    if not reports:
        console.print("no while loops")
        return
    console.print(_table(reports), width=page_width(console))
    for report in reports:
        if report.disagrees and report.stated is not None:
            stated = counted(report.stated, "trip")
            text = f"known_trip_count states {stated}, body and condition make "
            note = Text.assemble(
                ("WRONG ANNOTATION ", "bold red"), (f"%{report.name}: ", "bold"), text,
                (f"{report.trips:,}", "bold red"),
            )  # fmt: skip
            console.print(note)
    for report in reports:
        if report.reason:
            what = "trips as stated" if report.stated is not None else "trips unknown"
            print_footnote(console, f"%{report.name}: {what}: {report.reason}")


def _table(reports: list[LoopReport]) -> ReportTable:
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

    table = ReportTable(gap=2)
    table.add_column("loop")
    table.add_column("trips", justify="right", stays=True)
    table.add_column("from")
    table.add_column("counter")
    table.add_column("state", justify="right")
    table.add_column("body", justify="right")
    table.add_column("collectives", justify="right")
    for report in reports:
        trips, source, *others = _cells(report)
        style = "red" if report.disagrees else ""
        table.add_row(
            partial(_name, report),
            Text(trips, style=style),
            Text(source, style=_SOURCE_STYLES.get(source, style)),
            *others,
        )
    return table


def _name(report: LoopReport, room: int) -> Text:
    """The loop, below those it is in, and where it is from."""
    from rich.text import Text

    indent = "  " * min(report.depth, 8)
    name = Text(indent + middle(f"%{report.name}", room - len(indent)), style="bold")
    if report.op_name:
        name.append("\n" + indent + tail(report.op_name, room - len(indent)), "not bold dim")
    return name


def _cells(report: LoopReport) -> tuple[str, ...]:
    return (
        "?" if report.trips is None else f"{report.trips:,}",
        report.source,
        _counter_text(report.counter),
        human_bytes(report.state_bytes),
        f"{report.instructions:,}",
        f"{sum(report.collectives.values()):,}",
    )


def _counter_text(counter: Counter | None) -> str:
    """`#0 = 3, +2, < 10`: element 0 from 3 up by 2 while less than 10."""
    if counter is None:
        return ""
    step = "?" if counter.step is None else f"{counter.step:+}"
    sign = _SIGNS.get(counter.direction, counter.direction)
    return f"#{counter.element} = {_known(counter.init)}, {step}, {sign} {_known(counter.limit)}"


def _known(number: int | None) -> str:
    return "?" if number is None else str(number)


# -- JSON -----------------------------------------------------------------------------------------


def loops_to_json(reports: list[LoopReport]) -> list[dict[str, Any]]:
    """The loops as plain data, sizes in bytes."""
    return [asdict(report) for report in reports]
