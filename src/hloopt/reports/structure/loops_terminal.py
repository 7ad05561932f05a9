"""The report on while loops as a terminal page."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import human_bytes, middle, page_width, tail
from hloopt.reports.structure.loops import Counter, LoopReport

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

_SIGNS = {"LT": "<", "LE": "≤", "GT": ">", "GE": "≥", "EQ": "=", "NE": "≠"}
_SOURCE_STYLES = {"unknown": "yellow", "stated": "cyan"}


def render_loops(reports: Sequence[LoopReport], console: Console) -> None:
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


def _table(reports: Sequence[LoopReport]) -> ReportTable:
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
    """The cell of a loop: its name, indented by the loops around it, and its op_name."""
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
