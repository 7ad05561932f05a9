"""The grammar of expectations: from text to a figure and what is expected of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from operator import eq, ge, gt, le, lt, ne
from typing import Any

from hloopt.checks.expectations.model import (
    Attribute,
    Combine,
    Expectation,
    Figure,
    Group,
    Measure,
    Scalar,
    Table,
    Wanted,
)
from hloopt.checks.expectations.names import GROUPS, TABLES
from hloopt.checks.expectations.units import SHARE, UNITS, Number, Unit
from hloopt.cost_models import COST_MODELS
from hloopt.diagnostics import HloError, Source, did_you_mean
from hloopt.patterns import pattern
from hloopt.query.grammar import SelectorReader
from hloopt.query.terms import Term
from hloopt.token_reader import TokenReader

_NAME = pattern(r"[A-Za-z_][\w-]*")
_OPERATOR = pattern(r"==|!=|<=|>=|=~|!~|=>|=<|<>|[<>=~]|in\b")
_MEANT = {"=": "==", "=~": "~", "=>": ">=", "=<": "<=", "<>": "!="}
_ARGUMENT = pattern(r"[^\s,()]+")
_NUMBER = pattern(r"(-?\d{1,18}(?:\.\d{1,18})?(?:[eE][+-]?\d{1,2})?)\s*([A-Za-z]+|%)?")
_RANGE = pattern(r"\s*\.\.\s*")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge,
}  # fmt: skip
_NUMBERS, _TEXTS = (*_COMPARE, "in"), ("==", "!=", "~", "!~")


class ExpectationError(HloError):
    """The text of an expectation is not one."""

    code = "HLO800"


def parse_expectation(text: str, origin: str = "expectation") -> Expectation:
    """The expectation that a text is; `origin` is what messages call the text.

        expectation := TABLE ['(' selector ')'] '.' MEASURE wanted
                     | GROUP ['(' NAME '=' VALUE (',' NAME '=' VALUE)* ')'] '.' FIGURE wanted
        wanted      := OPERATOR NUMBER [UNIT] | 'in' NUMBER [UNIT] '..' NUMBER [UNIT]
                     | OPERATOR TEXT

    Raises ExpectationError, or SelectorError for a selector, with the place of the mistake.
    """
    return _Reader(Source(origin, text)).expectation()


def parse_figure(text: str, origin: str = "figure") -> Figure:
    """The figure that a text is: an expectation without what is expected. Raises as that."""
    return _Reader(Source(origin, text)).whole_figure()


class _Reader(TokenReader):
    error_class = ExpectationError

    def whole_figure(self) -> Figure:
        self.skip()
        figure = self.figure()
        self.end("figure", "leave the rest out")
        return figure

    def expectation(self) -> Expectation:
        self.skip()
        figure = self.figure()
        self.skip()
        wanted = self.wanted(figure.measure)
        self.end("expectation", "one expectation is one comparison: write another one")
        return Expectation(self.text.strip(), figure, wanted)

    def end(self, what: str, help: str) -> None:
        self.skip()
        if not self.is_at_end:
            end = self.position
            rest = _ARGUMENT.match(self.text, end)
            raise self.error(
                f"expected the end of the {what}", end, rest.end() if rest else end + 1, help
            )

    # -- the figure -----------------------------------------------------------------------------

    def figure(self) -> Figure:
        start = self.position
        name = self.name("the name of a table", [*TABLES, *GROUPS])
        table = TABLES.get(name) or GROUPS.get(name)
        if table is None:
            raise self.unknown("table", name, start, [*TABLES, *GROUPS])
        self.skip()
        term: Term | None = None
        arguments: tuple[tuple[str, str], ...] = ()
        opening = self.position
        if self.accept("("):
            if isinstance(table, Table):
                term = self.term(table)
            else:
                arguments = self.arguments(table)
            if not self.accept(")"):
                raise self.error("this parenthesis is never closed", opening, opening + 1)
        names = _names(table)
        if not self.accept("."):
            end = self.position
            what = f"'.' and a figure of {name}"
            raise self.error(f"expected {what}", end, end + 1, f"figures: {', '.join(names)}")
        start = self.position
        found = self.name(f"a figure of {name}", names)
        measure = table.measure(found) if isinstance(table, Table) else table.scalar(found)
        if measure is None:
            raise self.unknown(f"figure of {name}", found, start, names)
        return Figure(table, measure, term, arguments)

    def name(self, what: str, names: Iterable[str]) -> str:
        word = self.read(_NAME)
        if word is None:
            start = self.position
            raise self.error(f"expected {what}", start, start + 1, f"there are {', '.join(names)}")
        return word[0]

    def unknown(self, what: str, name: str, start: int, names: list[str]) -> HloError:
        hint = did_you_mean(name, names) or f"there are {', '.join(names)}"
        return self.error(f"unknown {what} '{name}'", start, start + len(name), hint)

    def term(self, table: Table) -> Term | None:
        """The selector between parentheses; None where there is nothing."""
        if self.text.startswith(")", self.position):
            return None
        reader = SelectorReader(self.source, table.vocabulary)
        reader.position = self.position
        term = reader.selector()
        reader.skip()
        if not reader.is_at_end and self.text[reader.position] != ")":
            raise reader.unexpected()
        self.position = reader.position
        return term

    def arguments(self, group: Group) -> tuple[tuple[str, str], ...]:
        found: dict[str, str] = {}
        while not self.text.startswith(")", self.position):
            start = self.position
            name = self.name(f"an argument of {group.name}", group.takes)
            if name not in group.takes:
                if not group.takes:
                    raise self.error(
                        f"{group.name} takes no arguments", start, self.position,
                        "selectors are for tables",
                    )  # fmt: skip
                raise self.unknown(f"argument of {group.name}", name, start, [*group.takes])
            if name in found:
                raise self.error(f"'{name}' is given twice", start, self.position)
            if not self.accept("="):
                raise self.error(f"expected '=' and a {name}", self.position, self.position + 1)
            found[name] = self.argument(name)
            if not self.accept(","):
                break
        return tuple(found.items())

    def argument(self, name: str) -> str:
        start = self.position
        value = self.quoted()
        if value is None:
            word = self.read(_ARGUMENT)
            if word is None:
                raise self.error(f"expected a {name}", start, start + 1)
            value = word[0]
        if name == "cost_model" and value not in COST_MODELS:
            raise self.unknown("cost model", value, start, [*COST_MODELS])
        if name == "target":
            from hloopt.targets import check_target

            try:
                check_target(value)
            except HloError as error:
                raise self.error(error.message, start, self.position, error.help) from None
        return value

    def quoted(self) -> str | None:
        """The text in quotes that stands here, which is then read; None without quotes."""
        if self.text[self.position : self.position + 1] not in ('"', "'"):
            return None
        reader = SelectorReader(self.source)
        reader.position = self.position
        text = reader.word("").text
        self.position = reader.position
        return text

    # -- what is expected -----------------------------------------------------------------------

    def wanted(self, measure: Measure | Attribute | Scalar) -> Wanted:
        start = self.position
        operators = _TEXTS if isinstance(measure, Attribute) else _NUMBERS
        found = self.read(_OPERATOR)
        if found is None:
            word = _ARGUMENT.match(self.text, start)
            raise self.error(
                f"expected a comparison of {measure.name}", start,
                word.end() if word else start + 1, f"one of {', '.join(operators)}",
            )  # fmt: skip
        operator = found[0]
        if operator not in operators:
            meant = _MEANT.get(operator)
            help = f"it takes {', '.join(operators)}"
            if meant in operators:
                help = f"write '{meant}'"
            raise self.error(
                f"'{measure.name}' does not take '{operator}'", start, found.end(), help
            )
        self.skip()
        if isinstance(measure, Attribute):
            return self.text_wanted(measure, operator)
        begin = self.position
        low, low_unit = self.number(measure)
        if operator != "in":
            written = self.text[begin : self.position].strip()
            compare, bound = _COMPARE[operator], low
            return Wanted(
                operator, written, lambda number: compare(number, bound), low_unit is SHARE,
                _holds_for_nothing(measure, operator, bound),
            )  # fmt: skip
        if self.read(_RANGE) is None:
            raise self.error(
                "expected '..' and the upper end", self.position, self.position + 1,
                "for example in 30..40, both included",
            )  # fmt: skip
        high, high_unit = self.number(measure)
        written = self.text[begin : self.position].strip()
        if (low_unit is SHARE) != (high_unit is SHARE) and low and high:
            raise self.error("both ends need the same unit", begin, self.position)
        if low > high:
            raise self.error("the lower end is above the upper one", begin, self.position)
        return Wanted(
            "in", written, lambda number: low <= number <= high, SHARE in (low_unit, high_unit),
            _holds_for_nothing(measure, "in", low),
        )  # fmt: skip

    def number(self, measure: Measure | Scalar) -> tuple[Fraction, Unit]:
        """A number in base units, and its kind. Raises ExpectationError for units of another."""
        start = self.position
        found = self.read(_NUMBER)
        if found is None:
            word = _ARGUMENT.match(self.text, start)
            raise self.error(
                f"expected {measure.unit.name}", start, word.end() if word else start + 1,
                _example(measure),
            )  # fmt: skip
        number, unit = found.groups()
        kinds = _kinds(measure)
        if unit is None:
            if float(number) != 0 and not kinds[0].is_bare:
                raise self.error(
                    f"'{number}' has no unit: {measure.name} is {measure.unit.name}",
                    *found.span(), help=_example(measure),
                )  # fmt: skip
            return Fraction(number), kinds[0]
        for kind in kinds:
            if (scale := kind.scale(unit)) is not None:
                return Fraction(number) * scale, kind
        raise self.wrong_unit(measure, unit, found.span(2))

    def wrong_unit(self, measure: Measure | Scalar, unit: str, place: tuple[int, int]) -> HloError:
        other = next((each for each in UNITS if unit in each.scales), None)
        if other is not None:
            message = f"'{unit}' is of {other.name}, but {measure.name} is {measure.unit.name}"
            return self.error(message, *place, help=_example(measure))
        units = [name for kind in _kinds(measure) for name in kind.scales]
        near = [name for name in units if name.lower() == unit.lower()]
        hint = f"did you mean '{near[0]}'?" if near else did_you_mean(unit, units)
        return self.error(f"unknown unit '{unit}'", *place, help=hint or _example(measure))

    def text_wanted(self, attribute: Attribute, operator: str) -> Wanted:
        start = self.position
        quoted = self.quoted()
        if quoted is None:
            text = self.text[start:].rstrip()
            self.position = len(self.text)
        else:
            text = quoted
        is_quoted = quoted is not None
        if not text:
            raise self.error(f"expected a text for {attribute.name}", start, start + 1)
        written = self.text[start : self.position].strip()
        try:
            accepts = _text_test(attribute, operator, text, is_quoted=is_quoted)
        except re.error as error:
            place = min(start + is_quoted + (error.pos or 0), len(self.text))
            raise self.error(f"not a regular expression: {error.msg}", place, place + 1) from None
        except HloError as error:
            raise self.error(error.message, start, self.position, error.help) from None
        return Wanted(operator, written, accepts)


def _names(table: Table | Group) -> list[str]:
    return [each.name for each in (table.measures if isinstance(table, Table) else table.scalars)]


def _kinds(measure: Measure | Scalar) -> tuple[Unit, ...]:
    return (measure.unit,) if measure.whole is None else (measure.unit, SHARE)


def _example(measure: Measure | Scalar) -> str:
    units = "; ".join(kind.units for kind in _kinds(measure))
    return f"units: {units}"


def _holds_for_nothing(measure: Measure | Scalar, operator: str, bound: Number | Fraction) -> bool:
    """Whether an expectation means something where no row is selected: an upper limit does."""
    if isinstance(measure, Measure) and measure.combine is Combine.EACH:
        return False
    return operator in ("<", "<=") or (operator in ("==", "in") and bound == 0)


def _text_test(
    attribute: Attribute, operator: str, text: str, *, is_quoted: bool
) -> Callable[[str], bool]:
    """Whether the text of a row is as expected. `*` stands for any text, unless quoted."""
    if operator in ("~", "!~"):
        search = re.compile(text).search
        return lambda found: (search(found) is not None) is (operator == "~")
    wanted = operator == "=="
    if "*" in text and not is_quoted:
        matches = re.compile(".*".join(map(re.escape, text.split("*"))), re.S).fullmatch
        return lambda found: (matches(found) is not None) is wanted
    normal = attribute.normal(text)
    return lambda found: (attribute.normal(found) == normal) is wanted
