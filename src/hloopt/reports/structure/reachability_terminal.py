"""The report on the order of two instructions as a terminal page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hloopt.reports.console.units import middle, page_width
from hloopt.reports.structure.reachability import OrderReport, PathStep

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.reports.console.table import ReportTable


def render_order(report: OrderReport, console: Console, *, top: int) -> None:
    """Print the answer, and the path it rests on: at most `top` of its instructions."""
    from rich.text import Text

    console.print(Text(_verdict(report), style="bold"))
    for line in _where(report):
        console.print(Text(line))
    if len(report.path) > 1:
        console.print(_path_table(report.path, top), width=page_width(console))


def _verdict(report: OrderReport) -> str:
    a, b = f"%{report.first.name}", f"%{report.second.name}"
    if report.is_reachable:
        return f"{b} is reachable from {a}"
    if report.is_connected:
        return f"{b} is not reachable from {a}, but {a} from {b}: {b} runs first"
    if report.compared is None or report.compared[0] is report.compared[1]:
        return f"{b} is not reachable from {a}: they are in different computations"
    return f"{b} is not reachable from {a}, nor {a} from {b}: they may run in any order"


def _where(report: OrderReport) -> list[str]:
    """The note on how instructions of different computations were compared."""
    first, second = report.first, report.second
    if first.parent is second.parent:
        return []
    lines = [f"%{i.name} is in %{i.parent.name}" for i in (first, second)]
    if report.compared is None:
        return [*lines, "no computation has exactly one call site that leads to each of them"]
    a, b = report.compared
    if a is b:
        return [*lines, f"both run within %{a.name} in %{a.parent.name}"]
    return [*lines, f"compared in %{a.parent.name}, where they are %{a.name} and %{b.name}"]


def _path_table(path: Sequence[PathStep], top: int) -> ReportTable:
    from hloopt.reports.console.table import ReportTable

    table = ReportTable(gap=2)
    table.add_column("step", justify="right")
    table.add_column("instruction", cut=middle)
    table.add_column("opcode")
    table.add_column("takes previous as")
    hidden = range((top + 1) // 2, len(path) - top // 2)
    for number, step in enumerate(path):
        if number not in hidden:
            name, opcode = f"%{step.instruction.name}", step.instruction.opcode.value
            table.add_row(f"{number:,}", name, opcode, step.takes_previous_as or "")
        elif number == hidden.start:
            table.add_row("", f"… {len(hidden):,} more; --top shows them", style="dim")
    return table
