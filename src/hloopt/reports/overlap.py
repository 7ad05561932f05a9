"""The report on hidden collectives: of a module, or of one before and after passes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from hloopt.analysis.overlap.analysis import ComputationOverlap, analyze_overlap
from hloopt.ir import Module
from hloopt.reports.units import human_bytes, human_seconds
from hloopt.targets import Target

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


@dataclass(frozen=True, slots=True)
class OverlapRow:
    """A computation with collectives. All but `runs` is about one run: of a body, one trip."""

    computation: str
    loop: str
    """The while whose body it is; empty where it is none's."""
    runs: int
    runs_known: bool
    """Whether the trips of all loops around it are known; else they count as one."""
    collectives: int
    bytes: int
    hidden_bytes: int
    """Moved while the device computes: off the critical path."""
    seconds: float
    exposed_seconds: float
    """Of these, how long the device waits for collectives."""
    state_bytes: int
    """What the loop keeps from trip to trip."""

    @classmethod
    def of(cls, found: ComputationOverlap) -> OverlapRow:
        return cls(
            computation=found.computation.name,
            loop=found.loop.name if found.loop else "",
            runs=found.runs.times,
            runs_known=found.runs.is_known,
            collectives=len(found.exposures),
            bytes=found.byte_count,
            hidden_bytes=found.hidden_bytes,
            seconds=found.seconds,
            exposed_seconds=found.exposed_seconds,
            state_bytes=found.state_bytes,
        )


@dataclass(frozen=True, slots=True)
class OverlapReport:
    """A module on a target."""

    target: str
    is_scheduled: bool
    rows: tuple[OverlapRow, ...]

    def total(self, figure: Callable[[OverlapRow], float]) -> float:
        """A figure of one run of the module: of all rows, each as often as it runs."""
        return sum(row.runs * figure(row) for row in self.rows)

    @property
    def state_bytes(self) -> int:
        return sum(row.state_bytes for row in self.rows)


def overlap_report(module: Module, target: Target) -> OverlapReport:
    """See `analyze_overlap` for what is assumed, and for the cost."""
    rows = tuple(map(OverlapRow.of, analyze_overlap(module, target)))
    return OverlapReport(target.title, module.is_scheduled, rows)


Pair = tuple[OverlapRow | None, OverlapRow | None]
"""A computation before and after passes."""

_NUMBERED = re.compile(r"(\.clone|\.\d+)+$")


def matched(before: OverlapReport, after: OverlapReport) -> list[Pair]:
    """Computations of both by their names, numbers and `.clone` at the end aside.

    Several of one name go together in order. O(rows).
    """
    waiting: dict[str, list[OverlapRow]] = {}
    for row in after.rows:
        waiting.setdefault(_NUMBERED.sub("", row.computation), []).append(row)
    pairs: list[Pair] = []
    for row in before.rows:
        same = waiting.get(_NUMBERED.sub("", row.computation))
        pairs.append((row, same.pop(0) if same else None))
    return pairs + [(None, row) for rows in waiting.values() for row in rows]


# -- terminal -------------------------------------------------------------------------------------


def render_overlap(before: OverlapReport, after: OverlapReport | None, console: Console) -> None:
    """Print a table of the computations with collectives, and what they make of the module."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    if not before.rows and not (after and after.rows):
        console.print("no collectives between devices")
        return
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("one run of", overflow="fold")
    for title in ("runs", "collectives", "bytes", "hidden", "waits", "state"):
        table.add_column(title, justify="right", overflow="fold")
    pairs: list[Pair] = matched(before, after) if after else [(row, None) for row in before.rows]
    for pair in pairs:
        table.add_row(*_cells(pair, is_comparison=after is not None))
    console.print(table)
    console.print(Text.assemble("one run of the module: ", *_summary(before, after)))
    console.print(Text(_assumptions(before, after), style="dim"))


def _cells(pair: Pair, *, is_comparison: bool) -> list[Text]:
    from rich.text import Text

    named = next(row for row in pair if row is not None)
    name = Text(f"%{named.computation}", style="bold")
    if named.loop:
        name.append(f", a trip of %{named.loop}", "not bold dim")
    figures: list[Callable[[OverlapRow], str]] = [
        lambda row: f"{row.runs:,}" + ("" if row.runs_known else "?"),
        lambda row: f"{row.collectives:,}",
        lambda row: human_bytes(row.bytes),
        lambda row: human_bytes(row.hidden_bytes),
        lambda row: human_seconds(row.exposed_seconds),
        lambda row: human_bytes(row.state_bytes) if row.state_bytes else "",
    ]
    rows = pair if is_comparison else pair[:1]
    return [name, *(_change(["" if row is None else f(row) for row in rows]) for f in figures)]


def _change(values: Sequence[str]) -> Text:
    """`3`, or `3 → 4` where it changed; `none` for what there is only once."""
    from rich.text import Text

    if len(set(values)) == 1:
        return Text(values[0])
    return Text(" → ".join(value or "none" for value in values), style="cyan")


def _summary(before: OverlapReport, after: OverlapReport | None) -> list[str | tuple[str, str]]:
    reports = [before] if after is None else [before, after]
    waits = [human_seconds(r.total(lambda row: row.exposed_seconds)) for r in reports]
    hidden = [human_bytes(round(r.total(lambda row: row.hidden_bytes))) for r in reports]
    moved = [human_bytes(round(r.total(lambda row: row.bytes))) for r in reports]
    parts: list[str | tuple[str, str]] = [
        *("waits ", (" → ".join(dict.fromkeys(waits)), "bold"), " for collectives, "),
        *((" → ".join(dict.fromkeys(hidden)), "bold"), " of "),
        *(" → ".join(dict.fromkeys(moved)), " off the critical path"),
    ]
    if after is not None:
        more = after.state_bytes - before.state_bytes
        parts += [", loops keep ", (human_bytes(more, signed=True) if more else "no more", "bold")]
    return parts


def _assumptions(before: OverlapReport, after: OverlapReport | None) -> str:
    reports = [before] if after is None else [before, after]
    kinds = {report.is_scheduled for report in reports}
    by = {True: "as scheduled", False: "in an order that waits little, whatever memory it needs"}
    how = by[kinds.pop()] if len(kinds) == 1 else " → ".join(by[r.is_scheduled] for r in reports)
    return f"{how}; {before.target}: roofline of computation, bandwidth of its fastest link"


# -- JSON -----------------------------------------------------------------------------------------


def overlap_to_json(before: OverlapReport, after: OverlapReport | None) -> dict[str, Any]:
    """The reports as plain data, and which rows belong together."""
    data: dict[str, Any] = {"before": _report_to_json(before)}
    if after is not None:
        data["after"] = _report_to_json(after)
        data["matched"] = [
            [None if row is None else row.computation for row in pair]
            for pair in matched(before, after)
        ]
        data["more_state_bytes"] = after.state_bytes - before.state_bytes
    return data


def _report_to_json(report: OverlapReport) -> dict[str, Any]:
    return {
        "target": report.target,
        "is_scheduled": report.is_scheduled,
        "bytes": round(report.total(lambda row: row.bytes)),
        "hidden_bytes": round(report.total(lambda row: row.hidden_bytes)),
        "exposed_seconds": report.total(lambda row: row.exposed_seconds),
        "state_bytes": report.state_bytes,
        "computations": [asdict(row) for row in report.rows],
    }
