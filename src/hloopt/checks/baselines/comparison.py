"""A module against its baseline: what became worse, what better, what is new."""

from __future__ import annotations

from collections.abc import Mapping

from hloopt.amounts import parse_share
from hloopt.checks.baselines.figures import figure_names, figure_of, is_worse
from hloopt.checks.doubts import Doubt
from hloopt.checks.expectations.model import Attribute, Figure, Table
from hloopt.checks.expectations.units import Number
from hloopt.checks.results import Check, Location, Severity, Verdict, Violation
from hloopt.diagnostics import HloError, counted, did_you_mean
from hloopt.reports.console.units import human_change, human_share

Tolerances = Mapping[str, float]
"""The share by which a figure may be worse, by its name or its group's and its name."""


def parse_tolerances(text: str) -> dict[str, float]:
    """The tolerances in `peak=2%,exposed=5%`. Raises HloError."""
    found = {}
    known = figure_names()
    for part in text.split(","):
        name, _, share = (each.strip() for each in part.partition("="))
        if name not in known:
            help = did_you_mean(name, known) or "for example peak=2%,schedule.exposed=5%"
            raise HloError(f"there is no figure '{name}' to tolerate", help=help, code="HLO801")
        try:
            found[name] = parse_share(share)
        except ValueError:
            raise HloError(
                f"'{part.strip()}' is no tolerance", help="for example peak=2%", code="HLO801"
            ) from None
    return found


def compare(
    before: Mapping[str, Number],
    now: Mapping[str, Number | Doubt],
    tolerances: Tolerances,
    file: str,
) -> list[Check]:
    """A check for each figure of a module that is not what it was, and one for all that are.

    `now` has a value or doubt for each figure of `before`. What it has beside these is new where
    it is of rows of a table, which were none before.
    """
    checks = []
    for text, value in now.items():
        figure = figure_of(text)
        if text in before or isinstance(figure.table, Table):
            checks.append(_check(text, figure, before.get(text, 0), value, tolerances, file))
    changed = [check for check in checks if check is not None]
    note = f"{counted(len(checks) - len(changed), 'figure')} as before"
    return [*changed, Check("baseline", "figures as before", Verdict.PASSED, notes=(note,))]


def missing(module: str) -> Check:
    """The check of a module that the baseline does not have."""
    return Check(
        *("baseline", "figures as before", Verdict.NONE),
        reason=f"the baseline has no module {module}",
        remedy="Add it: --update-baseline.",
    )


def _check(
    text: str,
    figure: Figure,
    before: Number,
    now: Number | Doubt,
    tolerances: Tolerances,
    file: str,
) -> Check | None:
    """The check of a figure; None where it is what it was."""
    title = "no worse than the baseline"
    if isinstance(now, Doubt):
        return Check(text, title, Verdict.NONE, reason=now.reason, remedy=now.remedy)
    if now == before:
        return None
    assert not isinstance(figure.measure, Attribute)  # figure_of refuses it
    unit = figure.measure.unit
    change = "new" if not before else human_change(before, now)
    said = f"{unit.text(before)} → {unit.text(now)}, {change}"
    if not is_worse(text, is_more=now > before):
        return Check(text, title, Verdict.PASSED, notes=(f"better: {said}",))
    names = figure.measure.name, f"{figure.table.name}.{figure.measure.name}"
    allowed = max(tolerances.get(name, 0.0) for name in names)
    if abs(now - before) <= allowed * abs(before):
        note = f"{said}, {human_share(allowed)} allowed"
        return Check(text, title, Verdict.PASSED, notes=(note,))
    violation = Violation(
        *(text, Severity.ERROR, f"worse: {said}", Location(file)),
        help=f"{human_share(allowed)} is allowed" if allowed else "",
    )
    return Check(text, title, Verdict.FAILED, (violation,))
