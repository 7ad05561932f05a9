"""The replication report as a terminal page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from hloopt.analysis.replication import ALL
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import (
    head,
    human_bytes,
    human_count,
    middle,
    more_text,
    origin,
    page_width,
)
from hloopt.reports.replication.findings import (
    Amounts,
    RedundantGroup,
    ReplicationReport,
    agreement_text,
    leaf_agreements,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable


def render_replication(report: ReplicationReport, console: Console, *, top: int = 10) -> None:
    """Print what is the same and what it costs, and the `top` groups of redundant work."""
    from rich.text import Text

    width = page_width(console)
    title = Text.assemble(
        f"Replication over {report.analysis.device_count:,} {report.axis} of ",
        (report.module.name, "bold"),
    )
    console.print(title, width=width)
    console.print(_summary(report), width=width)
    if report.groups:
        console.print()
        console.print(_table(report, top), width=width)
    for note in report.notes:
        print_footnote(console, note, width=width)


def _summary(report: ReplicationReport) -> ReportTable:
    from hloopt.reports.console.table import ReportTable

    table = ReportTable()
    table.add_column("", style="bold")
    table.add_column(f"same on all {report.analysis.device_count:,}", justify="right")
    columns = [report.on_all]
    if report.in_sets.instructions:
        table.add_column("same in sets", justify="right")
        columns.append(report.in_sets)
    table.add_column("on each device", justify="right", style="dim")
    total = report.total
    table.add_row("instructions", *_row(columns, total, "instructions", "{:,}".format))
    table.add_row("flops", *_row(columns, total, "flops", human_count))
    table.add_row("bytes accessed", *_row(columns, total, "bytes_accessed", human_bytes))
    return table


def _row(
    columns: list[Amounts], total: Amounts, field: str, text: Callable[[int], str]
) -> Iterator[str]:
    whole = getattr(total, field)
    for column in columns:
        part = getattr(column, field)
        yield f"{text(part)} ({part / max(whole, 1):5.1%})"
    yield text(whole)


def _table(report: ReplicationReport, top: int) -> ReportTable:
    from hloopt.reports.console.table import ReportTable

    shown, hidden = report.groups[:top], report.groups[top:]
    table = ReportTable(
        "computed alike on several devices; share: of all flops or of all bytes", gap=2
    )
    for name in ("share", "flops", "bytes", "runs"):
        table.add_column(name, justify="right")
    table.add_column("what")
    for group in shown:
        table.add_row(*_figures(report, group), _runs(group), partial(_what, group))
    if hidden:
        more = partial(more_text, len(hidden))
        table.add_row(*_figures(report, *hidden), "", more, style="dim")
    return table


def _runs(group: RedundantGroup) -> str:
    """`x24`, `x?`; nothing for once."""
    if not group.runs_known:
        return "x?"
    return "" if group.runs == 1 else f"x{group.runs:,}"


def _figures(report: ReplicationReport, *groups: RedundantGroup) -> tuple[str, str, str]:
    return (
        f"{report.share(*groups):.1%}",
        human_count(sum(group.flops for group in groups)),
        human_bytes(sum(group.bytes_accessed for group in groups)),
    )


def _what(group: RedundantGroup, room: int) -> Text:
    from rich.text import Text

    count = f"{len(group.names):,} x " if len(group.names) > 1 else ""
    text = Text(head(f"{count}{group.opcode} {group.shape}", room))
    if group.agreement is not ALL:
        text.append(f"\n{head(f'on {agreement_text(group.agreement)}', room)}", style="cyan")
    text.append(f"\n{origin(group.origin, room)}", style="dim")
    return text


# -- single instructions --------------------------------------------------------------------------


def render_instructions(report: ReplicationReport, console: Console) -> None:
    """Print a line for each leaf of each instruction: its shape index and where it is the same."""
    for computation in report.module.computations.values():
        lines = [
            _named(f"  %{instruction.name}", f"{_index_text(index)}: {agreement_text(agreement)}")
            for instruction in computation.instructions
            for index, agreement in leaf_agreements(report.analysis, instruction)
        ]
        if lines:
            heading = _named(f"%{computation.name}", f" over {report.axis}")
            console.out(*(line(console.width) for line in (heading, *lines)), sep="\n")


def _named(name: str, rest: str) -> Callable[[int], str]:
    """A line of a width that begins with a name, which is cut where there is no room for all."""
    return lambda width: middle(name, max(width - len(rest), _LEAST_NAME)) + rest


_LEAST_NAME = 12


def _index_text(index: tuple[int, ...]) -> str:
    return f"{{{','.join(map(str, index))}}}" if index else ""
