"""Entries in one list: violations, and checks that came to no verdict."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hloopt.checks.results import (
    NO_IMPACT,
    Check,
    CheckedModule,
    Impact,
    Location,
    Severity,
    Verdict,
    Violation,
)
from hloopt.diagnostics import counted

NO_VERDICT = "no verdict"


class Entry(NamedTuple):
    """A violation, or a check without a verdict, as one line can say it."""

    check: Check
    severity: Severity
    kind: str
    """`error`, `warning`, `note` or `no verdict`."""
    message: str
    """The check, and what came of it."""
    help: str
    location: Location
    related: tuple[Location, ...] = ()

    impact: Impact = NO_IMPACT


def entries_of(checked: Sequence[CheckedModule]) -> Iterator[Entry]:
    """All entries of module after module: the most costly first, else in the order of checks."""
    for module in checked:
        found = [entry for check in module.checks for entry in _of_check(check, module.file)]
        yield from sorted(found, key=lambda entry: entry.impact, reverse=True)


def _of_check(check: Check, file: str) -> Iterator[Entry]:
    for each in check.violations:
        yield Entry(
            check,
            each.severity,
            each.severity.value,
            _message(check, each),
            each.help,
            each.location,
            each.related,
            each.impact,
        )
    if check.verdict is Verdict.NONE:
        yield Entry(
            *(check, Severity.ERROR, NO_VERDICT),
            f"{check.name}: {check.reason}",
            *(check.remedy, Location(file)),
        )


def _message(check: Check, violation: Violation) -> str:
    why = f" ({check.why})" if check.why else ""
    return f"{violation.code}: {violation.message}{why}"


def summary(checked: Sequence[CheckedModule]) -> str:
    """`12 checks: 9 passed, 2 failed, 1 without a verdict`."""
    count = {
        verdict: sum(len(module.with_verdict(verdict)) for module in checked) for verdict in Verdict
    }
    parts = [
        f"{count[verdict]:,} {words}"
        for verdict, words in (
            (Verdict.PASSED, "passed"),
            (Verdict.FAILED, "failed"),
            (Verdict.NONE, "without a verdict"),
        )
        if count[verdict]
    ]
    return f"{counted(sum(count.values()), 'check')}: {', '.join(parts) or 'nothing to check'}"


def place_text(location: Location) -> str:
    """`step.hlo:12:3`, or the file where no line is known."""
    if location.line is None:
        return location.file
    return f"{location.file}:{location.line}:{location.column}"


def origin_text(location: Location) -> str:
    """`%add.1 jit(f)/add model.py:12 made by %d dot: …`: the parts that are known."""
    name = f"%{location.instruction}" if location.instruction else ""
    made = f"made by {location.made_by}" if location.made_by else ""
    return " ".join(part for part in (name, location.op_name, location.source, made) if part)
