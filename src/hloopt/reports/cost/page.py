"""The cost report as a page of its own: where the time goes by flops per byte, and a table.

With measured times there is a point per instruction below the roofline.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log10

from hloopt.diagnostics import counted
from hloopt.reports.console.units import human_bytes, human_count, human_ratio, human_seconds, some
from hloopt.reports.cost.findings import CostReport, CostRow
from hloopt.reports.cost.intensity import Bin, Intensities, Point, ceilings, intensity_of, peak_of
from hloopt.reports.cost.panel import BEGIN, FOOT, HEAD, LEFT, MARGIN, WIDTH, Panel
from hloopt.reports.html.page import (
    Column,
    LegendEntry,
    as_html,
    data_table,
    facts_list,
    html_page,
    legend_list,
    notes_list,
)
from hloopt.reports.look import BOUND
from hloopt.reports.sources import NO_SOURCE
from hloopt.targets import Target

_MOST_POINTS = 4000  # of the longest: a browser stays quick, and the rest is dust
_MOST_ROWS = 200
_MOST_NAMED = 5  # instructions in the tip of a bar
_COMPUTE, _MEMORY, _IDLE = BOUND["compute"].fill, BOUND["memory"].fill, "other"


def cost_page(report: CostReport) -> str:
    """A whole HTML document. O(instructions)."""
    found = Intensities.of(report)
    tips: list[list[str]] = []
    body = "".join(
        (
            facts_list(_facts(report)),
            _share_picture(report, found, tips),
            _roofline(report, found, tips),
            _table(report),
            notes_list(report.assumptions),
        )
    )
    title = f"Cost of {report.module} on {found.target.title}"
    return html_page(title, ("cost",), body, tips, notices=report.notices)


def _facts(report: CostReport) -> Iterator[tuple[str, str]]:
    total = report.total
    yield "flops", human_count(total.flops)
    yield "transcendentals", human_count(total.transcendentals)
    yield "bytes accessed", human_bytes(total.bytes_accessed)
    yield "unfused", human_bytes(total.unfused_bytes)
    yield "flops per byte", human_ratio(total.intensity)
    yield "least time", human_seconds(report.seconds)
    if report.seconds:
        yield "bound by compute", f"{report.compute_seconds / report.seconds:.0%} of it"
    if report.measured is not None:
        yield "measured", human_seconds(report.measured_seconds)


# -- shares of the time ---------------------------------------------------------------------------


def _share_picture(report: CostReport, found: Intensities, tips: list[list[str]]) -> str:
    """Bars: of the least time the share at each intensity."""
    step = next(step for step in _STEPS if 5 * step >= found.highest_share)
    most = step * max(ceil(found.highest_share / step), 1)
    panel = Panel(found.left, found.right, 0.0, most, 300)
    parts = [panel.level(step * k, f"{step * k:.0%}") for k in range(round(most / step) + 1)]
    parts += panel.axis()
    low = panel.height - FOOT
    parts.append(f'<text x="{(LEFT + BEGIN) / 2 - 4:.0f}" y="{low + 18}">0</text>')
    whole = report.seconds or 1.0
    places = [(found.idle, LEFT + 4.0, BEGIN - 12.0)]
    places += [(b, panel.x(log10(b.left)), panel.x(log10(b.right)) - 1.5) for b in found.bins]
    for each, left, right in places:
        if not each.rows:
            continue
        y = float(low)
        stacks = ((_MEMORY, each.memory_seconds), (_COMPUTE, each.compute_seconds))
        for fill, seconds in ((_IDLE, each.seconds),) if each is found.idle else stacks:
            high = seconds / whole / most * (low - HEAD)
            if seconds and high < 1.5:
                high = 1.5  # very little is not nothing
            y -= high
            if seconds:
                parts.append(
                    f'<rect class="bar-part" x="{left:.1f}" y="{y:.1f}" width="{right - left:.1f}" '
                    f'height="{high:.1f}" style="fill:var(--{fill})"/>'
                )
        tip = _bin_tip(report, each)
        parts.append(
            f'<rect class="target" x="{left:.1f}" y="{HEAD}" width="{right - left:.1f}" '
            f'height="{low - HEAD}" tabindex="0" data-i="{len(tips)}" role="img" '
            f'aria-label="{as_html(". ".join(tip))}"/>'
        )
        tips.append(tip)
    memory = report.seconds - report.compute_seconds - found.idle.seconds
    entries = [
        LegendEntry(_MEMORY, f"bound by memory {_share(memory, report)}"),
        LegendEntry(_COMPUTE, f"bound by compute {_share(report.compute_seconds, report)}"),
        LegendEntry(_IDLE, f"moves data, computes nothing {_share(found.idle.seconds, report)}"),
    ]
    return (
        "<h2>Share of the least time by flops per byte</h2>\n"
        + legend_list(entries, "shareLegend")
        + panel.drawing("share of the least time by flops per byte", "".join(parts))
    )


_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2)
"""Between lines at shares."""


def _share(seconds: float, report: CostReport) -> str:
    return f"{max(seconds, 0.0) / report.seconds:.1%}" if report.seconds else "0%"


def _bin_tip(report: CostReport, found: Bin) -> list[str]:
    """The lines shown for a bar."""
    where = "no flops"
    if found.right:
        where = f"{human_ratio(found.left)} to {human_ratio(found.right)} flops per byte"
    lines = [
        where,
        f"{human_seconds(found.seconds)}, {_share(found.seconds, report)} of the least time",
        f"{counted(len(found.rows), 'instruction')}, most time in:",
    ]
    for row in found.rows[:_MOST_NAMED]:
        lines.append(f"%{row.name} ({row.opcode}) {human_seconds(row.seconds)}")
    return lines


# -- roofline -------------------------------------------------------------------------------------

_UNMEASURED = """<p class="hint">The least time is the roofline's own bound: by it every
instruction would lie on the roof, so none is drawn. With measured times (--profile or --cost-table)
this page has a point for each instruction at the flop/s that it reached.</p>
"""


def _roofline(report: CostReport, found: Intensities, tips: list[list[str]]) -> str:
    """The roofline of the target, with a point for each instruction whose time is measured."""
    points = found.points[:_MOST_POINTS]
    target = found.target
    memory = log10(target.memory_bandwidth)
    rates = [log10(point.rate) for point in points]
    bottom = min([found.left + memory, *rates]) - (0.3 if points else 0.0)
    top = max([log10(peak_of(target)), *rates]) + 0.15
    panel = Panel(found.left, found.right, bottom, top, 400 if points else 260)
    parts = [*panel.axis(), *_roof(found.target, panel)]
    most = max((point.seconds for point in points), default=1.0)
    for point in reversed(points):  # the long ones on top
        fill = _COMPUTE if point.row.bound.is_compute else _MEMORY
        x, y = panel.x(max(log10(point.intensity), panel.left)), panel.y(log10(point.rate))
        radius = max(2.5, 14.0 * (point.seconds / most) ** 0.5)
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" data-i="{len(tips)}" '
            f'style="fill:var(--{fill});stroke:var(--{fill})"/>'
        )
        tips.append(_point_tip(report, point))
    parts += _ceiling_labels(found.target, panel)
    head = "<h2>Roofline of the target: flop/s over flops per byte</h2>\n"
    if points:
        left_out = len(found.points) - len(points)
        more = f"; the {len(points):,} longest of {len(found.points):,}" if left_out else ""
        entries = [
            LegendEntry(_MEMORY, "bound by memory"),
            LegendEntry(_COMPUTE, "bound by compute"),
        ]
        assert report.measured is not None
        source = as_html(report.measured.source)
        legend = legend_list(entries, "roofLegend")
        head = (
            f"<h2>Roofline: flop/s over flops per byte, measured</h2>\n{legend}"
            f'<p class="hint">A point per instruction at the flop/s it reached by {source}; the '
            f"larger, the more time{more}. Dashed: what units reach at most.</p>\n"
        )
    drawing = panel.drawing("roofline: flop/s by flops per byte", "".join(parts))
    return head + ("" if points else _UNMEASURED) + drawing


def _roof(target: Target, panel: Panel) -> Iterator[str]:
    """The bound by memory, the peak above it, and the flat roofs of element types."""
    memory, peak = log10(target.memory_bandwidth), log10(peak_of(target))
    for power in range(int(panel.bottom) + 1, int(panel.top) + 1):
        yield panel.level(power, human_count(10.0**power))
    corners = [(panel.left, panel.left + memory), (peak - memory, peak), (panel.right, peak)]
    path = " ".join(f"{panel.x(x):.1f},{panel.y(y):.1f}" for x, y in corners)
    yield f'<polyline class="roof" points="{path}"/>'
    end = WIDTH - MARGIN
    for rate in ceilings(target):
        level = log10(rate)
        if panel.bottom < level <= peak:
            y = panel.y(level)
            x = panel.x(max(level - memory, panel.left))
            yield f'<line class="ceiling" x1="{x:.1f}" y1="{y:.1f}" x2="{end}" y2="{y:.1f}"/>'


def _ceiling_labels(target: Target, panel: Panel) -> Iterator[str]:
    """Names of roofs beside their ends, moved up where they would overlap."""
    above = float("inf")
    for rate, label in sorted(ceilings(target).items()):
        if panel.bottom < log10(rate) <= panel.top:
            above = min(panel.y(log10(rate)) + 4, above - 14)
            x = WIDTH - MARGIN + 6
            yield f'<text class="roofs" x="{x}" y="{above:.1f}">{as_html(label)}</text>'


def _point_tip(report: CostReport, point: Point) -> list[str]:
    """The lines shown for a point."""
    row = point.row
    lines = [
        f"%{row.name} ({row.opcode}) in %{row.computation}",
        row.shape,
        row.op_name,
        *_sources(report, row),
        f"measured {human_seconds(point.seconds)} in {_runs(row)} runs: "
        f"{human_count(point.rate)} flop/s, {point.share_of_bound:.1%} of its roof",
        f"each {human_count(row.cost.flops)} flops, {human_bytes(row.cost.bytes_accessed)}, "
        f"{human_ratio(point.intensity)} per byte",
    ]
    return [line for line in lines if line]


def _sources(report: CostReport, row: CostRow) -> list[str]:
    """The lines of the program that an instruction runs at."""
    labels = (label for label, _ in report.sources.labels(row.instruction))
    return [label for label in labels if label != NO_SOURCE]


def _runs(row: CostRow) -> str:
    return f"{row.runs.times:,}" if row.runs.is_known else "an unknown number of"


# -- table ----------------------------------------------------------------------------------------


def _table(report: CostReport) -> str:
    """The instructions that take most time."""
    measured = {} if report.measured is None else report.measured.seconds
    columns = [
        Column("least time", "number"),
        Column("share", "number"),
        Column("bound by"),
        Column("flops", "number"),
        Column("bytes", "number"),
        Column("flops per byte", "number"),
        Column("runs", "number"),
    ]
    rows = report.rows
    if measured:
        columns[:0] = [
            Column("measured", "number"),
            Column("flop/s", "number"),
            Column("of the roof", "number"),
        ]
        rows = sorted(
            rows,
            key=lambda row: (row.name not in measured, -measured.get(row.name, 0) * row.runs.times),
        )
    columns += [Column("instruction", "name"), Column("shape", "name"), Column("op_name", "text")]
    columns.append(Column("source", "path"))
    shown = rows[:_MOST_ROWS]
    order = "measured" if measured else "least"
    more = f", the {len(shown):,} that take most of {len(rows):,}" if len(rows) > len(shown) else ""
    return f"<h2>Instructions by {order} time of all runs{more}</h2>\n" + data_table(
        "instructions", columns, (_cells(report, row, measured) for row in shown)
    )


def _cells(report: CostReport, row: CostRow, measured: dict[str, float]) -> list[str]:
    work = row.cost.flops + row.cost.transcendentals
    cells = [
        human_seconds(row.seconds),
        _share(row.seconds, report),
        "compute" if row.bound.is_compute else "memory",
        human_count(row.cost.flops * row.runs.times),
        human_bytes(row.cost.bytes_accessed * row.runs.times),
        human_ratio(intensity_of(row)),
        f"{row.runs.times:,}" if row.runs.is_known else "?",
    ]
    if measured:
        seconds = measured.get(row.name)
        cells[:0] = [
            "" if seconds is None else human_seconds(seconds * row.runs.times),
            human_count(work / seconds) if seconds and work else "",
            f"{row.bound.seconds / seconds:.1%}" if seconds else "",
        ]
    name = f"%{row.name} ({row.opcode})" if row.opcode not in row.name else f"%{row.name}"
    return [*cells, name, row.shape, row.op_name, some(_sources(report, row))]
