"""The parts of expectations: tables with rows and measures, groups of single figures, values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, TypeAlias

from hloopt.checks.doubts import Doubt
from hloopt.checks.expectations.units import COUNT, Number, Unit
from hloopt.checks.view import View
from hloopt.ir.instruction import Instruction
from hloopt.query.terms import Term
from hloopt.query.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """A row of a table, which is about an instruction."""

    instruction: Instruction
    record: Any = None
    """The finding that the row is made of."""


class Combine(Enum):
    """The way from the numbers of rows to the figure that is compared."""

    SUM = "sum"
    MAX = "largest"
    EACH = "each"
    """Every row is compared: there is no single figure."""


Amounts: TypeAlias = Callable[[View], Callable[[Row], Number]]
RowsDoubt: TypeAlias = Callable[[View, Sequence[Row]], Doubt | None]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number that the rows of a table have."""

    name: str
    doc: str
    unit: Unit
    of: Amounts
    """For a module, the function from a row to its number."""
    combine: Combine = Combine.SUM
    doubt: RowsDoubt = lambda view, rows: None
    """The reason why the number of some rows allows no verdict; None where it does."""
    whole: Callable[[View], Number] | None = None
    """The amount that shares of it are of; None where a share makes no sense."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """A text that the rows of a table have; every row is compared."""

    name: str
    doc: str
    read: Callable[[Row], str]
    """The text of a row; empty where it has none."""
    normal: Callable[[str], str] = str
    """The form in which texts that mean the same are equal."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows about the instructions of a module, selected by keys of their own and of those."""

    name: str
    doc: str
    noun: tuple[str, str]
    """Words for a row, and for several."""
    rows: Callable[[View], Sequence[Row]]
    vocabulary: Vocabulary
    measures: tuple[Measure | Attribute, ...]
    doubt: Callable[[View, Term | None], Doubt | None] = lambda view, term: None
    """The reason why the rows themselves allow no verdict."""

    def measure(self, name: str) -> Measure | Attribute | None:
        """The measure or attribute of a name; None where there is none."""
        return next((each for each in self.measures if each.name == name), None)


def count() -> Measure:
    """The measure of the number of rows."""
    return Measure("count", "number of them", COUNT, lambda view: lambda row: 1)


@dataclass(frozen=True, slots=True)
class Scalar:
    """A single figure of a module."""

    name: str
    doc: str
    unit: Unit
    read: Callable[[View], Number]
    doubt: Callable[[View], Doubt | None] = lambda view: None
    whole: Callable[[View], Number] | None = None
    """The amount that shares of it are of; None where a share makes no sense."""
    places: Callable[[View], Sequence[Instruction]] = lambda view: ()
    """The instructions behind it, those with most of it first."""


@dataclass(frozen=True, slots=True)
class Group:
    """Single figures about one subject."""

    name: str
    doc: str
    scalars: tuple[Scalar, ...]
    takes: tuple[str, ...] = ()
    """The names of its arguments: fields of the cost model."""

    def scalar(self, name: str) -> Scalar | None:
        """The figure of a name; None where there is none."""
        return next((each for each in self.scalars if each.name == name), None)


# -- expectations ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Figure:
    """The left side of an expectation: of a table, or of a group."""

    table: Table | Group
    measure: Measure | Attribute | Scalar
    term: Term | None = None
    """The selected rows of a table; None: all."""
    arguments: tuple[tuple[str, str], ...] = ()
    """The changes that a group makes to the cost model."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The right side of an expectation."""

    operator: str
    """The comparison: `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, and for texts `~` and `!~`."""
    text: str
    """The value as it was written."""
    accepts: Callable[[Any], bool] = field(repr=False)
    """Whether the figure, or the text of a row, is as expected."""
    is_share: bool = False
    """Whether a share of the whole is compared in place of the amount."""
    holds_for_nothing: bool = False
    """Whether it asks for no more than 0 at least or at most, so that nothing at all is fine."""

    def __str__(self) -> str:
        return f"{self.operator} {self.text}"


@dataclass(frozen=True, slots=True)
class Expectation:
    """A figure and what is expected of it."""

    text: str
    figure: Figure
    wanted: Wanted
