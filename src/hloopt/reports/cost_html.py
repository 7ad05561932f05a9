"""The cost report as a page of its own: a roofline to point at, without network or libraries."""

from __future__ import annotations

from html import escape
from math import floor, log10
from typing import Any

from hloopt.reports.cost import CostReport
from hloopt.reports.cost_chart import Axes, Point, axes_of, peak_of, placed, points_of
from hloopt.reports.page import facts_list, html_page, notes_list
from hloopt.reports.sources import NO_SOURCE
from hloopt.reports.units import human_bytes, human_count, human_ratio, human_seconds

_WIDTH, _HEIGHT = 960, 540
_LEFT, _RIGHT, _TOP, _BOTTOM = 80, 20, 20, 62
_MOST_POINTS = 4000  # of the longest: a browser stays quick, and the rest is dust
_SMALLEST, _LARGEST = 2.5, 16.0  # radii
_LEGEND = """<p><b class="compute">compute bound</b>, <b class="memory">memory bound</b>; the
larger, the more time. Dashed: what the units for an element type reach at most.</p>
"""


def cost_page(report: CostReport) -> str:
    """A whole HTML document. O(instructions)."""
    points = points_of(report)
    shown = points[:_MOST_POINTS]
    axes = axes_of(report, points)
    total = report.total
    facts = [
        ("flops", human_count(total.flops)),
        ("transcendentals", human_count(total.transcendentals)),
        ("bytes accessed", human_bytes(total.bytes_accessed)),
        ("unfused", human_bytes(total.unfused_bytes)),
        ("flops per byte", human_ratio(total.intensity)),
        ("least time", human_seconds(report.seconds)),
    ]
    notes = list(report.assumptions)
    if len(points) > len(shown):
        notes.append(f"the {len(shown):,} points that take most time, of {len(points):,}")
    if any(point.intensity < 10**axes.left for point in points):
        notes.append(f"points on the left edge compute less than {10.0**axes.left:g} per byte")
    idle = report.seconds - sum(point.row.seconds for point in points)
    if report.seconds and idle > 0:
        notes.append(f"{idle / report.seconds:.1%} of the time moves data and computes nothing")
    body = (
        f'{facts_list(facts)}<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="roofline">{_picture(report, shown, axes)}</svg>\n{_LEGEND}{notes_list(notes)}'
    )
    tips = [_tip(report, point) for point in shown]
    return html_page(f"{report.module} on {report.target.title}", ("cost",), body, tips)


def _tip(report: CostReport, point: Point) -> list[str]:
    """The lines shown for a point."""
    row = point.row
    known = f"{row.runs.times:,}" if row.runs.is_known else "an unknown number of"
    share = row.seconds / report.seconds if report.seconds else 0.0
    lines: list[Any] = [
        f"%{row.name} ({row.opcode}) in %{row.computation}",
        row.shape,
        row.op_name,
        *(label for label, _ in report.sources.labels(row.instruction) if label != NO_SOURCE),
        f"{known} runs, {human_seconds(row.seconds)} ({share:.1%}), "
        f"{'compute' if row.bound.is_compute else 'memory'} bound",
        f"each {human_count(row.cost.flops)} flops, {human_bytes(row.cost.bytes_accessed)}, "
        f"{human_ratio(point.intensity)} per byte",
    ]
    return [line for line in lines if line]


def _picture(report: CostReport, points: list[Point], axes: Axes) -> str:
    roof, labels = _roof(report, axes)
    parts = [_grid(axes), roof]
    most = max((point.row.seconds for point in points), default=1.0) or 1.0
    for number, point in reversed(list(enumerate(points))):  # the long ones on top
        x, y = _at(axes, *placed(point, axes))
        radius = max(_SMALLEST, _LARGEST * (point.row.seconds / most) ** 0.5)
        kind = "compute" if point.row.bound.is_compute else "memory"
        parts.append(
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" data-i="{number}"/>'
        )
    return "".join(parts) + labels


def _at(axes: Axes, across: float, up: float) -> tuple[float, float]:
    """Where powers of ten are in the picture."""
    x = (across - axes.left) / (axes.right - axes.left)
    y = (up - axes.bottom) / (axes.top + 0.1 - axes.bottom)
    return (
        _LEFT + x * (_WIDTH - _LEFT - _RIGHT),
        _HEIGHT - _BOTTOM - y * (_HEIGHT - _TOP - _BOTTOM),
    )


def _grid(axes: Axes) -> str:
    parts = []
    bottom, right = _HEIGHT - _BOTTOM, _WIDTH - _RIGHT
    for power in range(floor(axes.left), floor(axes.right) + 1):
        x, _ = _at(axes, power, axes.bottom)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 30}">{human_ratio(10.0**power)}</text>')
    for power in range(floor(axes.bottom) + 1, floor(axes.top) + 1):
        _, y = _at(axes, axes.left, power)
        label = human_count(10.0**power)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(f'<text class="side" x="{_LEFT - 8}" y="{y + 4:.1f}">{label}</text>')
    middle = (_LEFT + right) // 2
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 8}">flops per byte</text>')
    parts.append(f'<text transform="translate(14 {_HEIGHT // 2}) rotate(-90)">flop/s</text>')
    return "".join(parts)


def _roof(report: CostReport, axes: Axes) -> tuple[str, str]:
    """The bound by memory, the peak above it, and the flat roofs of element types; their names.

    Names go on top of the points, which crowd below the roofs.
    """
    target = report.target
    memory = log10(target.memory_bandwidth)
    peak = log10(peak_of(report))
    start = max(axes.left, axes.bottom - memory)
    corners = [(start, start + memory), (peak - memory, peak), (axes.right, peak)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (_at(axes, *corner) for corner in corners))
    parts = [f'<polyline class="roof" points="{path}"/>']
    labels = []
    end = _WIDTH - _RIGHT
    for rate, names in sorted(_ceilings(report).items()):
        power = log10(rate)
        if axes.bottom < power <= peak:
            x, y = _at(axes, power - memory, power)
            label = escape(f"{', '.join(names)}: {human_count(rate)}")
            parts.append(
                f'<line class="ceiling" x1="{x:.1f}" y1="{y:.1f}" x2="{end}" y2="{y:.1f}"/>'
            )
            labels.append(f'<text class="side roofs" x="{end}" y="{y - 4:.1f}">{label}</text>')
    return "".join(parts), "".join(labels)


def _ceilings(report: CostReport) -> dict[float, list[str]]:
    """The rates of the target, each with the types that units reach it for."""
    found: dict[float, list[str]] = {}
    target = report.target
    for kind, rates in (("matrix", target.matrix), ("vector", target.vector)):
        for name, rate in rates.items():
            found.setdefault(rate, []).append(f"{kind} {name}")
    return found
