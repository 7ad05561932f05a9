"""A roofline on the terminal: where the time goes, by flops per byte and by flops per second."""

from __future__ import annotations

from math import floor, log10
from typing import TYPE_CHECKING, NamedTuple

from hloopt.reports.cost import CostReport, CostRow
from hloopt.reports.units import human_count

if TYPE_CHECKING:
    from rich.text import Text

_ROWS = 12
_LABEL_WIDTH = 9
_DENSITIES = "∙•●█"
_DECADES_LEFT = 4  # of the ridge: what computes less for its bytes lies on the left edge
_COMPUTE_STYLE, _MEMORY_STYLE = "bold cyan", "bold yellow"


class Point(NamedTuple):
    """One instruction on the roofline."""

    intensity: float
    """Flops and transcendentals per byte."""
    rate: float
    """Flops and transcendentals per second in the least time."""
    row: CostRow


class Axes(NamedTuple):
    """The range of the picture, as powers of ten."""

    left: float
    right: float
    bottom: float
    top: float


def points_of(report: CostReport) -> list[Point]:
    """The instructions that compute and move anything, most time first."""
    points = []
    for row in report.rows:
        cost = row.cost
        work = cost.flops + cost.transcendentals
        if work > 0 and cost.bytes_accessed > 0:
            points.append(Point(work / cost.bytes_accessed, work / row.bound.seconds, row))
    return points


def peak_of(report: CostReport) -> float:
    """The highest rate of the target for a type between bf16 and f64, or what its points reach."""
    target = report.target
    rates = [target.matrix_rate("bf16"), target.vector_rate("f32")]
    reached = max((point.rate for point in points_of(report)), default=0.0)
    return max(rate for rate in (*rates, reached, 1.0) if rate)


def axes_of(report: CostReport, points: list[Point]) -> Axes:
    """A range that holds the points, the ridge and a part of both roofs."""
    peak = peak_of(report)
    ridge = log10(peak / report.target.memory_bandwidth)
    intensities = [log10(point.intensity) for point in points]
    left = floor(max(min([*intensities, ridge - 2]), ridge - _DECADES_LEFT))
    right = max([*intensities, ridge + 1]) + 0.1
    rates = [log10(point.rate) for point in points if point.intensity >= 10**left]
    return Axes(
        left, right, min([left + log10(report.target.memory_bandwidth), *rates]), log10(peak)
    )


def placed(point: Point, axes: Axes) -> tuple[float, float]:
    """Where to draw a point, as powers of ten: on the edge where it is beyond."""
    return max(log10(point.intensity), axes.left), max(log10(point.rate), axes.bottom)


def roofline_chart(report: CostReport, width: int) -> Text:
    """The picture in `width` columns. O(instructions + its size)."""
    from rich.text import Text

    points = points_of(report)
    axes = axes_of(report, points)
    columns = max(width - _LABEL_WIDTH - 2, 8)
    cells = _roofs(report, axes, columns)
    _place(points, axes, columns, cells)
    text = Text(no_wrap=True, overflow="crop")
    for row in range(_ROWS - 1, -1, -1):
        power = axes.bottom + (axes.top - axes.bottom) * row / (_ROWS - 1)
        label = human_count(10**power) if row % 3 == (_ROWS - 1) % 3 else ""
        text.append(f"{label:>{_LABEL_WIDTH}} {'┤' if label else '│'}")
        for column in range(columns):
            text.append(*cells.get((column, row), (" ", "")))
        text.append("\n")
    text.append_text(_axis(axes, columns))
    text.append("\nflop/s over flops per byte; size: share of the time; ", style="dim")
    text.append("● compute", style=_COMPUTE_STYLE)
    text.append(" ", style="dim")
    text.append("● memory", style=_MEMORY_STYLE)
    text.append(" bound", style="dim")
    idle = report.seconds - sum(point.row.seconds for point in points)
    if report.seconds and idle / report.seconds >= 0.005:
        text.append(f"\n{idle / report.seconds:.0%} of the time moves data and computes nothing")
    return text


_Cells = dict[tuple[int, int], tuple[str, str]]


def _roofs(report: CostReport, axes: Axes, columns: int) -> _Cells:
    """The slope of memory and the flat roof of the peak."""
    cells: _Cells = {}
    peak, bandwidth = peak_of(report), report.target.memory_bandwidth
    for column in range(columns):
        power = axes.left + (axes.right - axes.left) * column / (columns - 1)
        bound = 10**power * bandwidth
        row = _row_at(log10(min(peak, bound)), axes)
        if row >= 0:
            cells[column, row] = ("─" if bound >= peak else "⋅", "dim")
    return cells


def _place(points: list[Point], axes: Axes, columns: int, cells: _Cells) -> None:
    """Points by the share of time in their cell, coloured by what bounds most of it."""
    seconds: dict[tuple[int, int], list[float]] = {}
    for point in points:
        across, up = placed(point, axes)
        share = (across - axes.left) / (axes.right - axes.left)
        place = (round(share * (columns - 1)), _row_at(up, axes))
        both = seconds.setdefault(place, [0.0, 0.0])
        both[point.row.bound.is_compute] += point.row.seconds
    most = max((sum(both) for both in seconds.values()), default=0.0)
    for place, (memory, compute) in seconds.items():
        share = (memory + compute) / most if most else 0.0
        size = sum(share >= limit for limit in (0.03, 0.2, 0.6))
        style = _COMPUTE_STYLE if compute > memory else _MEMORY_STYLE
        cells[place] = (_DENSITIES[size], style)


def _row_at(power: float, axes: Axes) -> int:
    return round((power - axes.bottom) / (axes.top - axes.bottom) * (_ROWS - 1))


def _axis(axes: Axes, columns: int) -> Text:
    """The line below, with a mark and a number for each power of ten there is room for."""
    from rich.text import Text

    line, labels = ["─"] * columns, [" "] * (columns + 8)
    last = -9
    for power in range(floor(axes.left), floor(axes.right) + 1):
        column = round((power - axes.left) / (axes.right - axes.left) * (columns - 1))
        label = human_count(10**power) if power >= 0 else f"{10.0**power:g}"
        if not 0 <= column < columns or column < last + 2:
            continue
        line[column] = "┴"
        start = max(column - len(label) // 2, 0)
        labels[start : start + len(label)] = label
        last = start + len(label)
    space = " " * (_LABEL_WIDTH + 1)
    return Text(f"{space}└{''.join(line)}\n{space} {''.join(labels).rstrip()}")
