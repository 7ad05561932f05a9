"""Explained collectives as a terminal page."""

from __future__ import annotations

from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.ir.shapes.shape import format_shape
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import head, human_bytes, middle, more_text, page_width, tail
from hloopt.reports.sharding.findings import ExplainReport, LineGroup
from hloopt.reports.sources import cut_source
from hloopt.sharding.explain import Confidence, Explanation

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable


def render_explanations(report: ExplainReport, console: Console, *, top: int) -> None:
    """Print the `top` collectives below their lines of the program, the costliest line first."""
    from rich.text import Text

    width = page_width(console)
    found = len(report.explanations)
    title = Text.assemble(
        (report.module, "bold"),
        f" on {counted(report.partitions, 'partition')}: {counted(found, 'collective')}",
        f", {human_bytes(report.bytes)} sent by a device in a run" if found else "",
    )
    console.print(title, width=width)
    if report.mesh:
        console.print(Text(head(f"mesh {report.mesh}", width)))
    if found:
        console.print(_confidences(report), width=width)
        console.print()
        console.print(_table(report, top), width=width)
    for note in report.notes:
        print_footnote(console, note, width=width)


def _confidences(report: ExplainReport) -> str:
    found = [(c, report.count(c)) for c in Confidence]
    return "explained: " + ", ".join(f"{n:,} {c.value}" for c, n in found if n)


def _table(report: ExplainReport, top: int) -> ReportTable:
    from hloopt.reports.console.table import ReportTable

    table = ReportTable(gap=2)
    table.add_column("sent", justify="right")
    table.add_column("runs", justify="right")
    table.add_column("collective, made by")
    left = top
    for group in report.groups:
        if left <= 0:
            break
        table.add_row(human_bytes(group.bytes), "", partial(_heading, group), style="bold")
        for explanation in group.explanations[:left]:
            runs = f"x{explanation.runs.times:,}" if explanation.runs.is_known else "x?"
            table.add_row(human_bytes(explanation.bytes), runs, partial(_what, explanation))
        left -= len(group.explanations)
    if left < 0:
        table.add_row("", "", partial(more_text, len(report.explanations) - top), style="dim")
    return table


def _heading(group: LineGroup, room: int) -> str:
    text = f": {group.summary}"
    return cut_source(group.label, max(room - len(text), 16)) + text


def _what(e: Explanation, room: int) -> Text:
    from rich.text import Text

    instruction = e.collective.instruction
    axes = f" over {', '.join(e.axes)}" if e.axes else ""
    shape = format_shape(instruction.shape, layout=False)
    text = Text(head(f"{e.collective.kind} {shape}{axes} ", room))
    text.append(middle(f"%{instruction.name}", max(room - len(text.plain), 8)), "magenta")
    for line, style in _lines(e):
        text.append(f"\n  {head(line, room - 2)}", style)
    if e.cause.avoid:
        prose = wrap(f"avoided by {e.cause.avoid}", max(room - 2, 16), break_on_hyphens=False)
        text.append("".join(f"\n  {head(line, room - 2)}" for line in prose))
    if e.origin is not None and (name := op_name_of(e.origin)):
        text.append(f"\n  {tail(name, room - 2)}", "dim")
    return text


def _lines(e: Explanation) -> list[tuple[str, str]]:
    """The lines below a collective, each with its style."""
    if e.origin is None:
        return [("no instruction of the program was found for it", "yellow")]
    cause = e.cause
    moved = f" of %{cause.value.name}" if cause.value not in (None, e.origin) else ""
    made = f"%{e.origin.name} {e.origin.opcode}: {cause.kind}{moved}"
    lines = [(made, "" if e.confidence is not Confidence.AMBIGUOUS else "yellow")]
    if others := [c for c in e.candidates if c is not e.origin]:
        lines.append((f"or {', '.join(f'%{c.name}' for c in others)}: ambiguous", "yellow"))
    if cause.source or cause.target:
        lines.append((f"{cause.source or '?'} → {cause.target or '?'}", "cyan"))
    if e.is_full_remat:
        by = ", as the partitioner warned" if e.warning else ""
        lines.append((f"full rematerialization: whole on each device, then cut{by}", "red"))
    return lines
