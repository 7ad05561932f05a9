"""Findings for people, on a console: the most costly first, then the rules that did not run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from hloopt.checks.formats.lines import NO_VERDICT, Entry, entries_of, place_text
from hloopt.checks.lint.registry import all_rules
from hloopt.checks.results import CheckedModule, Location, Severity, Verdict
from hloopt.diagnostics import counted
from hloopt.reports.console.table import ReportTable
from hloopt.reports.console.units import head, page_width

_STYLES = {
    Severity.ERROR: "bold red",
    Severity.WARNING: "bold yellow",
    Severity.NOTE: "bold cyan",
}
_INDENT = "      "
_MOST_RELATED = 3


def render_lint(checked: Sequence[CheckedModule], console: Console, top: int) -> None:
    """The findings of each module, at most `top`, and the rules that did not run."""
    for module in checked:
        found = [each for each in entries_of([module]) if each.kind != NO_VERDICT]
        for entry in found[:top]:
            _render(entry, console)
        if len(found) > top:
            more = counted(len(found) - top, "more finding")
            console.print(Text(f"… and {more} in {module.file} (--top)", "dim"), soft_wrap=True)
            console.print()
        _render_not_run(module, console)
    console.print(Text(_summary(checked), "bold"))


def render_statistics(checked: Sequence[CheckedModule], console: Console, top: int) -> None:
    """The number of findings of each rule, the most frequent first; then what did not run."""
    counts = Counter(
        check.name for module in checked for check in module.checks for _ in check.violations
    )
    rules = all_rules()
    table = ReportTable(heads=False, gap=2)
    table.add_column(justify="right")
    table.add_column(style="bold")
    table.add_column()
    table.add_column(wraps=True)
    for code, count in counts.most_common():
        table.add_row(f"{count:,}", code, rules[code].name, rules[code].title)
    if counts:
        console.print(table)
        console.print()
    for module in checked:
        _render_not_run(module, console)
    console.print(Text(_summary(checked), "bold"))


def _render(entry: Entry, console: Console) -> None:
    code = entry.check.name
    kind = (f"{entry.severity.value}[{code}]", _STYLES[entry.severity])
    message = entry.message.removeprefix(f"{code}: ")
    console.print(Text.assemble(kind, (": ", "bold"), message))
    for place in (entry.location, *entry.related[:_MOST_RELATED]):
        _render_place(place, console)
    if len(entry.related) > _MOST_RELATED:
        more = f"{len(entry.related) - _MOST_RELATED:,}"
        console.print(Text(f"{_INDENT}and {more} more", "dim"))
    if entry.help:
        console.print(Text.assemble(("   = help: ", "bold"), entry.help))
    console.print()


def _render_place(place: Location, console: Console) -> None:
    line = Text.assemble(("  --> ", "bold blue"), place_text(place))
    console.print(line, soft_wrap=True)
    name = f"%{place.instruction}" if place.instruction else ""
    origin = "  ".join(part for part in (name, place.op_name, place.source) if part)
    if origin:
        shown = head(origin, page_width(console) - len(_INDENT))
        console.print(Text(_INDENT + shown, "dim"))
    if place.made_by:
        made = head(f"made by {place.made_by}", page_width(console) - len(_INDENT))
        console.print(Text(_INDENT + made, "dim"))


def _render_not_run(module: CheckedModule, console: Console) -> None:
    """The rules without a verdict, by the reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for check in module.with_verdict(Verdict.NONE):
        reasons.setdefault((check.reason, check.remedy), []).append(check.name)
    for (reason, remedy), codes in reasons.items():
        why = f" {', '.join(codes)}: {reason}. {remedy}"
        console.print(Text.assemble(("not run", "bold yellow"), why))
    if reasons:
        console.print()


def _summary(checked: Sequence[CheckedModule]) -> str:
    """`12 findings: 1 error, 11 warnings; 20 rules without findings, 3 not run`."""
    kinds = Counter(
        violation.severity
        for module in checked
        for check in module.checks
        for violation in check.violations
    )
    parts = [counted(kinds[severity], severity.value) for severity in Severity if kinds[severity]]
    found = counted(kinds.total(), "finding") + (f": {', '.join(parts)}" if parts else "")
    ended: dict[str, set[Verdict]] = {}
    for check in (check for module in checked for check in module.checks):
        ended.setdefault(check.name, set()).add(check.verdict)
    silent = sum(verdicts == {Verdict.PASSED} for verdicts in ended.values())
    not_run = sum(Verdict.NONE in verdicts for verdicts in ended.values())
    text = f"{found}; {counted(silent, 'rule')} without findings"
    return f"{text}, {not_run:,} not run" if not_run else text
