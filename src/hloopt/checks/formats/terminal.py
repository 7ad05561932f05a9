"""Results for people, on a console."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import StringIO

from rich.console import Console
from rich.text import Text

from hloopt.checks.formats.lines import summary
from hloopt.checks.results import Check, CheckedModule, Location, Verdict, Violation
from hloopt.reports.console.console import PageConsole
from hloopt.reports.console.table import ReportTable
from hloopt.reports.console.units import tail

_WORDS = {
    Verdict.PASSED: ("passed", "green"),
    Verdict.FAILED: ("FAILED", "bold red"),
    Verdict.NONE: ("no verdict", "bold yellow"),
}
_INDENT = "  "


def render_checks(checked: Sequence[CheckedModule], console: Console, top: int) -> None:
    """Each check with its verdict; at most `top` instructions for each violation."""
    for number, module in enumerate(checked):
        if len(checked) > 1:
            if number:
                console.print()
            console.print(Text(module.file, "bold"), soft_wrap=True)
        for check in module.checks:
            _render(check, console, top)
    console.print(Text(summary(checked), "bold"))


def text_of(render: Callable[[Console], None]) -> str:
    """A page as plain text, 80 columns wide."""
    file = StringIO()
    render(PageConsole(file=file, width=80, highlight=False))
    return file.getvalue()


def _render(check: Check, console: Console, top: int) -> None:
    word, style = _WORDS[check.verdict]
    line = Text.assemble((word, style), " ", check.name)
    for note in check.notes:
        line.append(f"  ({note})", "dim")
    console.print(line)
    if check.why and check.verdict is not Verdict.PASSED:
        console.print(Text(f"{_INDENT}{check.why}", "italic"))
    if check.verdict is Verdict.NONE:
        console.print(Text(f"{_INDENT}{check.reason}. {check.remedy}"))
    for violation in check.violations[:top]:
        _render_violation(violation, console, top)
    if len(check.violations) > top:
        console.print(Text(f"{_INDENT}… and {len(check.violations) - top:,} more", "dim"))


def _render_violation(violation: Violation, console: Console, top: int) -> None:
    console.print(Text(f"{_INDENT}{violation.message}"))
    places = [each for each in (violation.location, *violation.related) if each.instruction]
    if places:
        console.print(_table(places[:top]))
    if len(places) > top:
        console.print(Text(f"{_INDENT * 2}… and {len(places) - top:,} more", "dim"))
    if violation.help:
        console.print(Text(f"{_INDENT}{violation.help}", "dim"))


def _table(places: Sequence[Location]) -> ReportTable:
    table = ReportTable(heads=False, gap=2)
    table.add_column()
    table.add_column()
    table.add_column(cut=tail)
    for place in places:
        origin = " ".join(part for part in (place.op_name, place.source) if part)
        line = "" if place.line is None else f"{place.line}:{place.column}"
        table.add_row(f"{_INDENT * 2}%{place.instruction}", line, origin)
    return table
