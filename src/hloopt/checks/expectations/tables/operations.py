"""The table of operations of a schedule: collectives, copies and calls beside the main stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hloopt.checks.doubts import Doubt, schedule_doubt
from hloopt.checks.expectations.model import Combine, Measure, Row, Table, count
from hloopt.checks.expectations.tables.parts import key, keys_and_instructions
from hloopt.checks.expectations.units import TIME
from hloopt.checks.view import View
from hloopt.ir.opcode import OPCODES
from hloopt.query.kinds import FLAG, SIZE, TEXT, choice

if TYPE_CHECKING:
    from hloopt.simulation import ComputationRun
    from hloopt.simulation.hiding import Hiding
    from hloopt.simulation.operations import Operation


def _rows(view: View) -> list[Row]:
    return [Row(hiding.operation.start, (run, hiding)) for run, hiding in view.schedule.hidings]


def _operation(record: tuple[ComputationRun, Hiding]) -> Operation:
    return record[1].operation


def _times(
    read: Callable[[Operation], float], *, all_runs: bool = True
) -> Callable[[View], Callable[[Row], float]]:
    """The time of a row in seconds, as often as it runs."""

    def of(view: View) -> Callable[[Row], float]:
        scale = view.schedule.unit.seconds or 0.0

        def seconds(row: Row) -> float:
            runs = row.record[0].runs if all_runs else 1
            return read(_operation(row.record)) * runs * scale

        return seconds

    return of


def _doubt(view: View, rows: Sequence[Row]) -> Doubt | None:
    return schedule_doubt(view)


def _makespan(view: View) -> float:
    return view.schedule.simulation.makespan * (view.schedule.unit.seconds or 0.0)


def _time(
    name: str,
    doc: str,
    read: Callable[[Operation], float],
    combine: Combine = Combine.SUM,
) -> Measure:
    of = _times(read, all_runs=combine is Combine.SUM)
    return Measure(name, doc, TIME, of, combine, _doubt, _makespan)


OPERATIONS = Table(
    "operations",
    "collectives, copies and calls beside the main stream, as `hloopt schedule` runs them",
    ("operation", "operations"),
    _rows,
    keys_and_instructions(
        "kind=all-gather",
        key("kind", choice("opcode", lambda: OPCODES), "what runs: all-gather, copy, call …",
            lambda record: (_operation(record).kind.value,)),
        key("stream", TEXT, "the stream that it runs on", lambda r: (_operation(r).stream.name,)),
        key("reason", TEXT, "why it is exposed, as `hloopt schedule` says",
            lambda record: (record[1].reason.value,)),
        key("moved", SIZE, "bytes that it is about", lambda r: (_operation(r).size,)),
        key("is-exposed", FLAG, "the main stream waits for it",
            lambda record: _operation(record).exposed > 0),
    ),
    (
        count(),
        _time("exposed", "time that the main stream waits for them, all runs together",
              lambda operation: operation.exposed),
        _time("max_exposed", "longest wait in one run of an operation",
              lambda operation: operation.exposed, Combine.MAX),
        _time("latency", "time that they take, all runs together",
              lambda operation: operation.latency),
        _time("hidden", "part of that time that other work covers",
              lambda operation: operation.hidden),
    ),
    lambda view, term: schedule_doubt(view),
)  # fmt: skip
