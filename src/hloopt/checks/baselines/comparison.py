"""A module against its baseline: what became worse, what better, what is new."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hloopt.checks.baselines.figures import (
    evaluate,
    figure_names,
    is_from_table,
    is_worse,
    texts_of,
)
from hloopt.checks.expectations.files import parse_share
from hloopt.checks.expectations.grammar import parse_figure
from hloopt.checks.expectations.model import Attribute, Doubt
from hloopt.checks.expectations.units import COUNT, Number, Unit
from hloopt.checks.expectations.view import View
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


def compare(figures: Mapping[str, Number], view: View, tolerances: Tolerances) -> list[Check]:
    """A check for each figure that is not what it was, and one for all that are."""
    checks = [_check(text, before, view, tolerances) for text, before in figures.items()]
    new = [text for text in texts_of(view) if text not in figures and is_from_table(text)]
    checks += [_check(text, 0, view, tolerances) for text in new]
    changed = [check for check in checks if check is not None]
    same = len(checks) - len(changed)
    note = f"{counted(same, 'figure')} as before"
    return [*changed, Check("baseline", "figures as before", Verdict.PASSED, notes=(note,))]


def missing(module: str) -> Check:
    """The check of a module that the baseline does not have."""
    return Check(
        *("baseline", "figures as before", Verdict.NONE),
        reason=f"the baseline has no module {module}",
        remedy="Add it: --update-baseline.",
    )


def _check(text: str, before: Number, view: View, tolerances: Tolerances) -> Check | None:
    """The check of a figure; None where it is what it was."""
    now = evaluate(text, view)
    title = "no worse than the baseline"
    if isinstance(now, Doubt):
        return Check(text, title, Verdict.NONE, reason=now.reason, remedy=now.remedy)
    if now == before:
        return None
    unit = _unit(text)
    change = "new" if not before else human_change(before, now)
    said = f"{unit.text(before)} → {unit.text(now)}, {change}"
    if not is_worse(text, is_more=now > before):
        return Check(text, title, Verdict.PASSED, notes=(f"better: {said}",))
    allowed = max((tolerances.get(name, 0.0) for name in _names(text)), default=0.0)
    if abs(now - before) <= allowed * abs(before):
        note = f"{said}, {human_share(allowed)} allowed"
        return Check(text, title, Verdict.PASSED, notes=(note,))
    violation = Violation(
        *(text, Severity.ERROR, f"worse: {said}"),
        Location(view.subject.file),
        help=f"{human_share(allowed)} is allowed" if allowed else "",
    )
    return Check(text, title, Verdict.FAILED, (violation,))


def _unit(text: str) -> Unit:
    measure = parse_figure(text, "baseline").measure
    return COUNT if isinstance(measure, Attribute) else measure.unit


def _names(text: str) -> Iterator[str]:
    figure = parse_figure(text, "baseline")
    yield figure.measure.name
    yield f"{figure.table.name}.{figure.measure.name}"
