"""Tables of reports: figures in full, long names cut with `…`, no line wider than the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from rich.text import Text

from hloopt.diagnostics import printable
from hloopt.reports.console.styled_text import as_it_is, cut, escaped, fitting, wrapped
from hloopt.reports.console.units import Cut, columns, head

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions

Cell: TypeAlias = str | Text | Callable[[int], str | Text]
"""A cell: a text, or a function that makes one for the room there is.

A line end in a `Text` begins a second line of the cell; in a `str` it is escaped."""

_LEAST = 12
_LEAST_PROSE = 24
"""The least widths of what is cut, and of what is broken between words, for the sake of figures."""
_ANY = 10_000
_LEFT_OUT = "…"


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    justify: Literal["left", "right"] = "left"
    style: str = ""
    cut: Cut = head
    wraps: bool = False
    stays: bool = True
    is_shown: bool = True

    @property
    def is_figure(self) -> bool:
        return self.justify == "right"


@dataclass(slots=True)
class _Shape:
    """The widths of a column of a table: wanted, the least, and its own."""

    column: _Column
    number: int
    natural: int
    width: int


class ReportTable:
    """Rows of cells in columns; printed, it takes the width of the page and no more.

    Columns to the right hold figures, which are never cut: where the page is too narrow for all,
    the last ones are left out and a column `…` says so. The others share what room is left, and
    what is too long for them is cut, or, where `wraps` says so, broken between words. Lines have no
    blanks at the end. O(cells).
    """

    def __init__(
        self, title: str = "", *, heads: bool = True, rule: bool = True, gap: int = 3
    ) -> None:
        """`heads`: whether columns have titles; `rule`: whether a line is drawn below these; `gap`:
        blanks between columns, 2 where there are many."""
        self.title = title
        self.gap = gap
        self.heads = heads
        self.rule = rule and heads
        self._columns: list[_Column] = []
        self._rows: list[tuple[Sequence[Cell], str]] = []
        self._lines_below: dict[int, list[Text]] = {}

    def add_column(
        self,
        title: str = "",
        *,
        justify: Literal["left", "right"] = "left",
        style: str = "",
        cut: Cut = head,
        wraps: bool = False,
        stays: bool | None = None,
        shown: bool = True,
    ) -> None:
        """Add a column to the right of the others.

        `stays`: whether it is shown on the narrowest page, as that by which the table is sorted
        must be. Names stay unless this says no, figures where it says yes; the first does.
        `shown`: whether it is shown on any page; rows have a cell for it all the same.
        """
        is_kept = stays if stays is not None else justify == "left"
        is_first_figure = justify == "right" and not self._columns
        keeps = is_kept or is_first_figure
        self._columns.append(_Column(title, justify, style, cut, wraps, keeps, shown))

    def add_row(self, *cells: Cell, style: str = "") -> None:
        """Add a row; cells left out at its end are empty."""
        missing = len(self._columns) - len(cells)
        assert missing >= 0, f"{len(cells)} cells in {len(self._columns)} columns"
        self._rows.append(((*cells, *[""] * missing), style))

    def add_line(self, text: Text) -> None:
        """Add a line that goes over all columns; what is too long is broken between words, and
        indented as it begins."""
        self._lines_below.setdefault(len(self._rows), []).append(text)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        page = options.max_width
        shapes = self._layout(page)
        if self.title:
            yield from map(as_it_is, wrapped(Text(self.title, "italic"), page, console))
        if self.heads:
            yield _joined(
                shapes, [Text(shape.column.title, "bold") for shape in shapes], self.gap, page
            )
        if self.rule:
            rule = sum(shape.width for shape in shapes) + self.gap * (len(shapes) - 1)
            yield fitting(Text("─" * min(rule, page)), page)
        yield from self._extra(0, console, page)
        for number, (cells, style) in enumerate(self._rows, 1):
            parts = [_lines(shape, cells, console) for shape in shapes]
            for index in range(max(map(len, parts))):
                pieces = [part[index] if index < len(part) else Text() for part in parts]
                line = _joined(shapes, pieces, self.gap, page)
                line.style = style
                yield line
            yield from self._extra(number, console, page)

    def _extra(self, row: int, console: Console, page: int) -> Iterator[Text]:
        for text in self._lines_below.get(row, ()):
            yield from map(as_it_is, wrapped(escaped(text), page, console))

    def _layout(self, page: int) -> list[_Shape]:
        """The columns that are shown on a page."""
        shown = [number for number, column in enumerate(self._columns) if column.is_shown]
        shapes = [self._shape(number) for number in shown]
        mark = 0  # room for what says that figures are left out
        while sum(shape.width + self.gap for shape in shapes) - self.gap + mark > page:
            droppable = [shape for shape in shapes if not shape.column.stays]
            if not droppable:
                break
            shapes.remove(droppable[-1])
            if droppable[-1].column.is_figure:
                mark = self.gap + len(_LEFT_OUT)
        room = page - mark - self.gap * (len(shapes) - 1)
        for wraps in (False, True):  # prose gets what is left
            flexible = [s for s in shapes if not s.column.is_figure and s.column.wraps is wraps]
            taken = sum(shape.width for shape in shapes if shape not in flexible)
            _share(flexible, room - taken)
        if mark:
            place = max((n for n, s in enumerate(shapes, 1) if s.column.is_figure), default=0)
            shapes.insert(place, _Shape(_Column(_LEFT_OUT), len(self._columns), 1, 1))
        return shapes

    def _shape(self, number: int) -> _Shape:
        column = self._columns[number]
        sizes = (_width(_text(cells[number], _ANY)) for cells, _ in self._rows)
        natural = max([columns(column.title), *sizes])
        least = _LEAST_PROSE if column.wraps else _LEAST
        return _Shape(column, number, natural, natural if column.is_figure else min(natural, least))


def _share(shapes: Iterable[_Shape], room: int) -> None:
    """Share `room` out: none gets more than it wants; those that get less all get the same."""
    waiting = sorted(shapes, key=lambda shape: shape.natural)
    for served, shape in enumerate(waiting):
        shape.width = max(1, min(shape.natural, room // (len(waiting) - served)))
        room -= shape.width


def _text(cell: Cell, room: int) -> Text:
    """The text of a cell in `room`, or a longer one."""
    shown = cell(room) if callable(cell) else cell
    return Text(printable(shown)) if isinstance(shown, str) else shown


def _width(text: Text) -> int:
    return max(map(columns, text.plain.split("\n")))


def _lines(shape: _Shape, cells: Sequence[Cell], console: Console) -> list[Text]:
    """A cell of a row in lines that fit."""
    if shape.number == len(cells):
        return [Text()]
    column, width = shape.column, shape.width
    lines = []
    for text in _text(cells[shape.number], width).split("\n", allow_blank=True):
        line = escaped(text)
        line.stylize_before(column.style)
        if column.is_figure or columns(line.plain) <= width:
            lines.append(line)
        elif column.wraps:
            lines += wrapped(line, width, console)
        else:
            lines.append(cut(line, width, column.cut))
    return lines


def _joined(shapes: Sequence[_Shape], pieces: Sequence[Text], gap: int, page: int) -> Text:
    """One line of a table."""
    line = Text()
    begin = 0  # where on the page the next piece may begin
    for shape, piece in zip(shapes, pieces, strict=True):
        if piece.plain:
            indent = shape.width - columns(piece.plain) if shape.column.is_figure else 0
            line.append(" " * (begin + indent - columns(line.plain)))
            line.append_text(piece)
        begin += shape.width + gap
    return fitting(line, page)
