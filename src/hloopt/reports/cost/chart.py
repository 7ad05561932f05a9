"""The time by flops per byte, on the terminal; a roofline where times are
measured."""

from __future__ import annotations

from itertools import groupby
from math import log10
from operator import itemgetter
from typing import TYPE_CHECKING

from hloopt.reports.console.units import human_count, human_ratio
from hloopt.reports.cost.intensity import Bin, Intensities, Point, peak_of

if TYPE_CHECKING:
    from rich.text import Text

    from hloopt.reports.cost.findings import CostReport

_ROWS = 8
_ROOFLINE_ROWS = 12
_LABEL_WIDTH = 9
_IDLE_WIDTH = 4  # columns for what computes nothing, and a gap
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_DENSITIES = "∙•●█"
_COMPUTE_STYLE, _MEMORY_STYLE = "bold cyan", "bold yellow"
_Cell = tuple[str, str]


def intensity_chart(report: CostReport, width: int) -> Text:
    """The picture in `width` columns. O(instructions + its size)."""
    from rich.text import Text

    found = Intensities.of(report)
    columns = max(width - _LABEL_WIDTH - 2, 8)
    text = Text(no_wrap=True, overflow="crop")
    if found.points:
        _add_roofline(text, found, columns)
    else:
        _add_shares(text, found, columns)
    return text


def _legend(text: Text, words: str) -> None:
    text.append(f"\n{words} ", style="dim")
    text.append("█ compute", style=_COMPUTE_STYLE)
    text.append(" ", style="dim")
    text.append("█ memory", style=_MEMORY_STYLE)
    text.append(" bound", style="dim")


# -- shares of the time ---------------------------------------------------------------------------


def _add_shares(text: Text, found: Intensities, columns: int) -> None:
    """Bars: the share of the least time at an intensity, what computes nothing at the left."""
    room = columns - _IDLE_WIDTH
    bars: list[Bin | None] = [found.idle] * (_IDLE_WIDTH - 1) + [None]
    count = len(found.bins)
    bars += [found.bins[column * count // room] for column in range(room)]
    whole = sum(each.seconds for each in [found.idle, *found.bins])
    most = found.highest_share
    for row in range(_ROWS - 1, -1, -1):
        label = f"{most * (row + 1) / _ROWS:.0%}" if row % 2 else ""
        text.append(f"{label:>{_LABEL_WIDTH}} {'┤' if label else '│'}")
        cells = [_share_cell(each, row, most * whole) for each in bars]
        for style, run in groupby(cells, key=itemgetter(1)):
            text.append("".join(map(itemgetter(0), run)), style)
        text.append("\n")
    _add_axis(text, found, columns, _IDLE_WIDTH)
    _legend(text, "share of the least time over flops per byte;")


def _share_cell(found: Bin | None, row: int, most: float) -> _Cell:
    """One character of a bar; of two colours that of the larger part."""
    if found is None or not most:
        return " ", ""
    eighths = round(found.seconds / most * 8 * _ROWS)
    if found.seconds and not eighths:
        eighths = 1  # very little is not nothing
    is_compute = found.compute_seconds > found.memory_seconds
    sign = _EIGHTHS[min(8, max(0, eighths - 8 * row))]
    return sign, _COMPUTE_STYLE if is_compute else _MEMORY_STYLE


def _add_axis(text: Text, found: Intensities, columns: int, start: int) -> None:
    """The line below, with a mark and a number for each power of ten there is room for."""
    line, labels = ["─"] * columns, [" "] * (columns + 8)
    last = -9
    if start:
        labels[1] = "0"
        last = 1
    for power in range(round(found.left), int(found.right) + 1):
        share = (power - found.left) / (found.right - found.left)
        column = start + round(share * (columns - start - 1))
        label = human_count(10**power) if power >= 0 else human_ratio(10.0**power)
        first = max(column - len(label) // 2, 0)
        if first < last + 2 or column >= columns:
            continue
        line[column] = "┴"
        labels[first : first + len(label)] = label
        last = first + len(label)
    space = " " * (_LABEL_WIDTH + 1)
    text.append(f"{space}└{''.join(line)}\n{space} {''.join(labels).rstrip()}")


# -- roofline -------------------------------------------------------------------------------------

_Cells = dict[tuple[int, int], _Cell]


def _add_roofline(text: Text, found: Intensities, columns: int) -> None:
    """Points at the rates that were reached, below what the target allows."""
    top = log10(max(peak_of(found.target), *(point.rate for point in found.points)))
    lowest = min(log10(point.rate) for point in found.points)
    bottom = min(found.left + log10(found.target.memory_bandwidth), lowest)

    def row_at(power: float) -> int:
        return round((power - bottom) / max(top - bottom, 1e-9) * (_ROOFLINE_ROWS - 1))

    def column_at(power: float) -> int:
        share = (power - found.left) / (found.right - found.left)
        return round(min(max(share, 0.0), 1.0) * (columns - 1))

    cells: _Cells = {}
    peak, bandwidth = peak_of(found.target), found.target.memory_bandwidth
    for column in range(columns):
        power = found.left + (found.right - found.left) * column / (columns - 1)
        bound = 10**power * bandwidth
        cells[column, row_at(log10(min(peak, bound)))] = ("─" if bound >= peak else "⋅", "dim")
    places: dict[tuple[int, int], list[Point]] = {}
    for point in found.points:
        place = column_at(log10(point.intensity)), row_at(log10(point.rate))
        places.setdefault(place, []).append(point)
    most = max(_seconds(points) for points in places.values())
    for place, points in places.items():
        cells[place] = _density(points, _seconds(points) / most)
    for row in range(_ROOFLINE_ROWS - 1, -1, -1):
        power = bottom + (top - bottom) * row / (_ROOFLINE_ROWS - 1)
        label = human_count(10**power) if row % 3 == (_ROOFLINE_ROWS - 1) % 3 else ""
        text.append(f"{label:>{_LABEL_WIDTH}} {'┤' if label else '│'}")
        for column in range(columns):
            text.append(*cells.get((column, row), (" ", "")))
        text.append("\n")
    _add_axis(text, found, columns, 0)
    _legend(text, "measured flop/s over flops per byte; size: time;")


def _seconds(points: list[Point]) -> float:
    return sum(point.seconds for point in points)


def _density(points: list[Point], share: float) -> _Cell:
    compute = sum(point.seconds for point in points if point.row.bound.is_compute)
    size = sum(share >= limit for limit in (0.03, 0.2, 0.6))
    is_compute = compute > _seconds(points) / 2
    return _DENSITIES[size], _COMPUTE_STYLE if is_compute else _MEMORY_STYLE
