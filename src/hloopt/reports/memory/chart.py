"""Memory over the positions of a schedule, on the terminal."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING

from hloopt.memory.model import MemoryReport
from hloopt.reports.console.units import human_bytes

if TYPE_CHECKING:
    from rich.text import Text

_ROWS = 8
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_LABEL_WIDTH = 10
_OVER_LIMIT_STYLE = "red"


def memory_chart(report: MemoryReport, width: int, style: str, limit: int | None = None) -> Text:
    """The picture in `width` columns, each the most in its share of the positions.

    Temporaries in `style`; what is beyond `limit` bytes in red. O(positions + its size).
    """
    from rich.text import Text

    columns = _columns(report.timeline, width - _LABEL_WIDTH - 2)
    text = Text(no_wrap=True, overflow="crop")
    for row in range(_ROWS - 1, -1, -1):
        top = (row + 1) / _ROWS * report.peak
        label = human_bytes(round(top)) if row % 2 else ""
        text.append(f"{label:>{_LABEL_WIDTH}} ┤" if label else " " * _LABEL_WIDTH + " │")
        over = limit is not None and top > limit
        cells = [_cell(size, row, report, _OVER_LIMIT_STYLE if over else style) for size in columns]
        for cell_style, run in groupby(cells, key=itemgetter(1)):
            text.append("".join(map(itemgetter(0), run)), cell_style)
        text.append("\n")
    peak = report.peak_instruction
    assert peak is not None
    at = peak.position * len(columns) // len(report.timeline)
    text.append(f"{'0 B':>{_LABEL_WIDTH}} └{'─' * at}▲{'─' * (len(columns) - at - 1)}\n")
    text.append(f"{'':{_LABEL_WIDTH + 2}}position {peak.position:,} of {len(report.timeline):,}")
    text.append("   ░ set aside throughout  ")
    text.append("█", style=style)
    text.append(" temporaries")
    return text


def _columns(timeline: list[int], width: int) -> list[int]:
    """The timeline in at most `width` columns, each the largest of its positions."""
    count = len(timeline)
    width = max(1, min(width, count))
    return [max(timeline[i * count // width : (i + 1) * count // width]) for i in range(width)]


def _cell(size: int, row: int, report: MemoryReport, style: str) -> tuple[str, str]:
    """One character of the chart, and its style."""
    scale = 8 * _ROWS / report.peak
    eighths = min(8, max(0, round(size * scale) - 8 * row))
    if report.throughout * scale >= 8 * row + 4 and eighths:
        return "░", "dim"
    return _EIGHTHS[eighths], style
