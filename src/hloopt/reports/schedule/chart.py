"""One run of a computation on the terminal: what the main stream does, and what runs beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING

from hloopt.reports.console.units import CycleUnit, human_bytes
from hloopt.reports.look import WAITING, WORK
from hloopt.reports.work_kinds import WorkKind, work_kind
from hloopt.simulation import ComputationRun

if TYPE_CHECKING:
    from rich.text import Text

_LABEL_WIDTH = 15
_EIGHTHS = "▁▂▃▄▅▆▇█"
_MAIN_STREAM = WORK[WorkKind.COMPUTE].style
_Cell = tuple[str, str]
Interval = tuple[float, float]


def schedule_chart(run: ComputationRun, usage: Sequence[int], unit: CycleUnit, width: int) -> Text:
    """The picture of a run in `width` columns, each a share of its time.

    Below the main stream a row per stream, and `usage`, the memory by position. O(instructions).
    """
    from rich.text import Text

    columns = width - _LABEL_WIDTH - 2
    busy = _shares(zip(run.begin, run.end, strict=True), run.duration, columns)
    waits = [(operation.needed, operation.finish) for operation in run.operations]
    waiting = _shares(waits, run.duration, columns)
    text = Text(no_wrap=True, overflow="crop")
    _row(text, "main stream", map(_main_cell, busy, waiting))
    streams = dict.fromkeys(operation.stream for operation in run.operations)
    for stream in streams:
        own = [operation for operation in run.operations if operation.stream is stream]
        covered = _shares(_merged((o.begin, o.finish) for o in own), run.duration, columns)
        exposed = _shares(
            ((o.needed, o.finish) for o in own if o.exposed > 0), run.duration, columns
        )
        style = WORK[work_kind(own[0].start)].style
        _row(text, stream.name, map(partial(_beside_cell, style), covered, exposed))
    _row(text, "memory", _memory_cells(run, usage, columns))
    middle, end = unit.text(run.duration / 2), unit.text(run.duration)
    scale = f"0{middle:>{columns // 2}}{end:>{columns - columns // 2 - 1}}"
    text.append(" " * (_LABEL_WIDTH + 1) + scale)
    return text


def legend() -> Text:
    """The legend of the signs."""
    from rich.text import Text

    return Text.assemble(
        " " * (_LABEL_WIDTH + 1),
        ("█", _MAIN_STREAM),
        " works  ",
        ("▓", _MAIN_STREAM),
        " waits at times  ",
        ("░", WAITING),
        " waits  ",
        ("━ ╌", WORK[WorkKind.COLLECTIVE].style),
        " in flight, at times",
    )


def _row(text: Text, label: str, cells: Iterable[_Cell]) -> None:
    text.append(f"{label[:_LABEL_WIDTH]:>{_LABEL_WIDTH}} ")
    for style, run in groupby(cells, key=lambda cell: cell[1]):
        text.append("".join(sign for sign, _ in run), style)
    text.append("\n")


def _shares(intervals: Iterable[Interval], duration: float, columns: int) -> list[float]:
    """The part of each column disjoint intervals cover."""
    result = [0.0] * columns
    scale = columns / duration if duration else 0.0
    for begin, end in intervals:
        first, last = begin * scale, end * scale
        column = int(first)
        while first < last and column < columns:
            edge = min(last, column + 1.0)
            result[column] += edge - first
            first, column = edge, column + 1
    return result


def _merged(intervals: Iterable[Interval]) -> list[Interval]:
    """The same time, covered once."""
    result: list[Interval] = []
    for begin, end in sorted(intervals):
        if result and begin <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((begin, end))
    return result


def _main_cell(busy: float, waiting: float) -> _Cell:
    if waiting >= 0.5:
        return "░", WAITING
    return ("▓" if waiting >= 0.1 else "█" if busy > 0 else " "), _MAIN_STREAM


def _beside_cell(style: str, covered: float, exposed: float) -> _Cell:
    sign = "━" if covered >= 0.5 else "╌" if covered > 0.02 else " "
    return sign, WAITING if exposed >= 0.5 * covered else style


def _memory_cells(run: ComputationRun, usage: Sequence[int], columns: int) -> list[_Cell]:
    """The most in each column, against the most of all."""
    most = [0] * columns
    peak = max(usage, default=0)
    scale = columns / run.duration if run.duration else 0.0
    for position, size in enumerate(usage):
        first, last = (
            min(columns - 1, int(times[position] * scale)) for times in (run.begin, run.end)
        )
        for column in range(first, last + 1):
            most[column] = max(most[column], size)
    for column in range(1, columns):  # where the main stream waits
        most[column] = most[column] or most[column - 1]
    return [(_EIGHTHS[min(7, 8 * size // peak)] if peak else " ", "") for size in most]


def peak_label(usage: Sequence[int], arguments: int) -> str:
    """The most memory of a run."""
    return human_bytes(max(usage, default=0) + arguments)
