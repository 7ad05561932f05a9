"""Expectations put to a module: each is passed, failed, or without a verdict."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hloopt.checks.doubts import Doubt
from hloopt.checks.expectations.doubts import asked
from hloopt.checks.expectations.model import (
    Attribute,
    Combine,
    Expectation,
    Figure,
    Measure,
    Row,
    Scalar,
    Table,
)
from hloopt.checks.expectations.units import SHARE, Number, Unit
from hloopt.checks.results import Check, Location, Severity, Verdict, Violation
from hloopt.checks.view import View
from hloopt.diagnostics import counted
from hloopt.ir.instruction import Instruction
from hloopt.reports.console.units import some

_MOST_PLACES = 100
"""The most instructions that a failed expectation names."""


def check(expectation: Expectation, view: View) -> Check:
    """Put an expectation to a module. Takes what its figure takes, each report made once."""
    figure = expectation.figure
    view = view.under(figure.arguments)
    if isinstance(figure.measure, Scalar):
        return _check_scalar(expectation, figure.measure, view)
    assert isinstance(figure.table, Table)
    doubt = figure.table.doubt(view, figure.term)
    if doubt is not None:
        return _without_verdict(expectation, doubt)
    rows = _selected_rows(figure, view)
    if not rows:
        return _of_nothing(expectation, view)
    if isinstance(figure.measure, Attribute):
        return _check_texts(expectation, figure.measure, rows, view)
    doubt = figure.measure.doubt(view, rows)
    if doubt is not None:
        return _without_verdict(expectation, doubt)
    if figure.measure.combine is Combine.EACH:
        return _check_each(expectation, figure.measure, rows, view)
    return _check_rows(expectation, figure.measure, rows, view)


def value_of(figure: Figure, view: View) -> Number | Doubt:
    """The value of a figure that is one number; 0 of no rows."""
    view = view.under(figure.arguments)
    measure = figure.measure
    if isinstance(measure, Scalar):
        return measure.doubt(view) or measure.read(view)
    assert isinstance(figure.table, Table)
    assert isinstance(measure, Measure)
    doubt = figure.table.doubt(view, figure.term)
    if doubt is not None:
        return doubt
    rows = _selected_rows(figure, view)
    return measure.doubt(view, rows) or _together(measure, map(measure.of(view), rows))


def _together(measure: Measure, numbers: Iterable[Number]) -> Number:
    return sum(numbers) if measure.combine is Combine.SUM else max(numbers, default=0)


def rows_of(table: Table, view: View) -> Sequence[Row]:
    """All rows of a table, which are made once for a cost model."""
    return view.once(("rows", table.name, view.cost_model), lambda: table.rows(view))


def _selected_rows(figure: Figure, view: View) -> Sequence[Row]:
    """The rows of a table that a figure is about, in the order of the table."""
    assert isinstance(figure.table, Table)
    rows, term = rows_of(figure.table, view), figure.term
    if term is None:
        return rows
    test = term.bind(view.facts)
    return [row for row in rows if test(row)]


# -- verdicts -------------------------------------------------------------------------------------


def _check_scalar(expectation: Expectation, scalar: Scalar, view: View) -> Check:
    doubt = scalar.doubt(view)
    if doubt is not None:
        return _without_verdict(expectation, doubt)
    number = scalar.read(view)
    compared, text = _compared(expectation, scalar, number, view)
    if expectation.wanted.accepts(compared):
        return _passed(expectation, text)
    return _failed(expectation, [f"it is {text}"], [scalar.places(view)], view)


def _check_rows(
    expectation: Expectation, measure: Measure, rows: Sequence[Row], view: View
) -> Check:
    amount = measure.of(view)
    numbers = {row: amount(row) for row in rows}
    number = _together(measure, numbers.values())
    compared, text = _compared(expectation, measure, number, view)
    if expectation.wanted.accepts(compared):
        return _passed(expectation, text)
    largest_first = sorted(rows, key=lambda row: -numbers[row])
    places = [row.instruction for row in largest_first if numbers[row]]
    return _failed(expectation, [f"it is {text}"], [places], view)


def _check_each(
    expectation: Expectation, measure: Measure, rows: Sequence[Row], view: View
) -> Check:
    amount, messages, places = measure.of(view), [], []
    for row in rows:
        compared, text = _compared(expectation, measure, amount(row), view)
        if not expectation.wanted.accepts(compared):
            messages.append(f"{measure.name} of %{row.instruction.name} is {text}")
            places.append([row.instruction])
    if not places:
        return _passed(expectation, counted(len(rows), *_nouns(expectation)))
    return _failed(expectation, messages, places, view)


def _check_texts(
    expectation: Expectation, attribute: Attribute, rows: Sequence[Row], view: View
) -> Check:
    messages, places = [], []
    for row in rows:
        text = attribute.read(row)
        if not expectation.wanted.accepts(text):
            name = f"%{row.instruction.name}"
            has = f"{attribute.name} of {name} is {text}" if text else f"{name} has none"
            messages.append(has)
            places.append([row.instruction])
    if not places:
        return _passed(expectation, counted(len(rows), *_nouns(expectation)))
    return _failed(expectation, messages, places, view)


def _of_nothing(expectation: Expectation, view: View) -> Check:
    """The check where no row is selected: upper limits hold, all else fails as vacuous."""
    _, many = _nouns(expectation)
    note = f"no {many} match" if expectation.figure.term is not None else f"there are no {many}"
    if expectation.wanted.holds_for_nothing:
        return _check(expectation, Verdict.PASSED, notes=(note,))
    violation = Violation(
        expectation.text,
        Severity.ERROR,
        f"vacuous: {note}",
        Location(view.subject.file),
        help=_values_there_are(expectation.figure, view)
        or "Expect .count == 0 where none is right; else look at what the selector asks for.",
    )
    return _check(expectation, Verdict.FAILED, violations=(violation,))


def _values_there_are(figure: Figure, view: View) -> str:
    """The values of the first key that no row has the wanted value of; empty without one."""
    assert isinstance(figure.table, Table)
    rows = rows_of(figure.table, view)
    for comparison in asked(figure.term):
        if rows and not any(map(comparison.bind(view.facts), rows)):
            key = comparison.key
            read = key.read(view.facts)
            found = (read(key.subject(row) if key.subject else row) for row in rows)
            listed = (values for values in found if not isinstance(values, bool))
            texts = {
                str(each) for values in listed for each in values if isinstance(each, str | int)
            }
            if texts:
                return f"{key.name} is {some(sorted(texts))}."
    return ""


# -- parts of checks ------------------------------------------------------------------------------


def _compared(
    expectation: Expectation, measure: Measure | Scalar, number: Number, view: View
) -> tuple[Number, str]:
    """The number that is compared, and the figure as people read it."""
    unit: Unit = measure.unit
    if not expectation.wanted.is_share or unit is SHARE or measure.whole is None:
        return number, unit.text(number)
    whole = measure.whole(view)
    share = number / whole if whole else 0.0
    return share, f"{SHARE.text(share)} ({unit.text(number)} of {unit.text(whole)})"


def _nouns(expectation: Expectation) -> tuple[str, str]:
    table = expectation.figure.table
    assert isinstance(table, Table)
    return table.noun


def _check(
    expectation: Expectation,
    verdict: Verdict,
    *,
    violations: tuple[Violation, ...] = (),
    notes: tuple[str, ...] = (),
) -> Check:
    return Check(expectation.text, _title(expectation), verdict, violations, notes=notes)


def _title(expectation: Expectation) -> str:
    return f"{expectation.figure.table.name}: {expectation.figure.measure.doc}"


def _passed(expectation: Expectation, figure: str) -> Check:
    return _check(expectation, Verdict.PASSED, notes=(figure,))


def _without_verdict(expectation: Expectation, doubt: Doubt) -> Check:
    return Check(
        *(expectation.text, _title(expectation), Verdict.NONE),
        reason=doubt.reason,
        remedy=doubt.remedy,
    )


def _failed(
    expectation: Expectation,
    messages: Iterable[str],
    places: Iterable[Sequence[Instruction]],
    view: View,
) -> Check:
    """A violation for each message, at the first of its places; the others are related."""
    violations = []
    for message, instructions in zip(messages, places, strict=True):
        here = [view.subject.location_of(each) for each in instructions[:_MOST_PLACES]]
        more = len(instructions) - len(here)
        first = here[0] if here else Location(view.subject.file)
        violations.append(
            Violation(
                *(expectation.text, Severity.ERROR, message, first),
                help=f"and {counted(more, 'instruction')} more" if more > 0 else "",
                related=tuple(here[1:]),
            )
        )
    return _check(expectation, Verdict.FAILED, violations=tuple(violations))
