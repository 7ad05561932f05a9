"""A table of Markdown, as `$GITHUB_STEP_SUMMARY` shows it."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.checks.formats.lines import origin_text, summary
from hloopt.checks.results import Check, CheckedModule, Verdict
from hloopt.reports.console.markdown import markdown_text

_WORDS = {Verdict.PASSED: "passed", Verdict.FAILED: "**failed**", Verdict.NONE: "**no verdict**"}
_MOST_PLACES = 3


def write_markdown(checked: Sequence[CheckedModule]) -> str:
    """A summary and a table for each module."""
    lines = [f"**hloopt**: {markdown_text(summary(checked))}", ""]
    for module in checked:
        lines += [
            f"### {markdown_text(module.file)}",
            "",
            "| check | verdict | finding |",
            "| --- | --- | --- |",
        ]
        lines += [_row(check) for check in module.checks]
        lines.append("")
    return "\n".join(lines)


def _row(check: Check) -> str:
    found = "<br>".join(map(markdown_text, _found(check)))
    return f"| {markdown_text(check.name)} | {_WORDS[check.verdict]} | {found} |"


def _found(check: Check) -> list[str]:
    if check.verdict is Verdict.NONE:
        return [f"{check.reason}. {check.remedy}"]
    lines = list(check.notes)
    for each in check.violations:
        lines.append(each.message)
        places = [place for place in (each.location, *each.related) if place.instruction]
        lines += [origin_text(place) for place in places[:_MOST_PLACES]]
        more = len(places) - _MOST_PLACES
        lines += [f"and {more:,} more"] if more > 0 else []
    return lines
