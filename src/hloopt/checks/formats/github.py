"""Workflow commands of GitHub Actions: an annotation at the line of each entry.

https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.checks.formats.lines import NO_VERDICT, Entry, entries_of, origin_text, summary
from hloopt.checks.results import CheckedModule, Severity
from hloopt.diagnostics import printable

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def write_github(checked: Sequence[CheckedModule]) -> str:
    """A command for each finding, and a summary for the log."""
    lines = [_command(each) for each in entries_of(checked)]
    return "".join(f"{line}\n" for line in (*lines, _message(summary(checked))))


def _command(entry: Entry) -> str:
    place = entry.location
    title = f"hloopt: {NO_VERDICT}" if entry.kind == NO_VERDICT else "hloopt"
    fields = {
        "file": place.file,
        "line": place.line,
        "endLine": place.end_line,
        "col": place.column,
        "endColumn": place.end_column if place.end_line == place.line else None,
        "title": title,
    }
    given = ",".join(f"{name}={_field(value)}" for name, value in fields.items() if value)
    parts = (entry.message, origin_text(place), entry.help)
    text = "\n".join(printable(part) for part in parts if part)
    return f"::{_COMMANDS[entry.severity]} {given}::{_message(text)}"


def _message(text: str) -> str:
    """Escaped, so that a name in a module is never a command of its own."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _field(value: object) -> str:
    return _message(printable(str(value))).replace(":", "%3A").replace(",", "%2C")
