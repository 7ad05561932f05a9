"""The table of collectives."""

from __future__ import annotations

from hloopt.analysis.async_operations import SYNC_COLLECTIVES
from hloopt.analysis.inventory.collectives import Collective, Form, collectives_of
from hloopt.checks.doubts import not_partitioned
from hloopt.checks.expectations.doubts import unknown_runs
from hloopt.checks.expectations.model import Measure, Row, Table, count
from hloopt.checks.expectations.tables.parts import (
    OP_NAME,
    SHAPE,
    key,
    keys_and_instructions,
    per_run,
    runs,
)
from hloopt.checks.expectations.units import BYTES
from hloopt.checks.view import View
from hloopt.query.keys import TYPE
from hloopt.query.kinds import FLAG, NUMBER, SIZE, TEXT, choice


def _rows(view: View) -> list[Row]:
    return [Row(each.instruction, each) for each in collectives_of(view.subject.module)]


def _payload(row: Row) -> int:
    record: Collective = row.record
    return record.payload


def _wire(row: Row) -> int:
    record: Collective = row.record
    return record.wire


COLLECTIVES = Table(
    "collectives",
    "collectives, each once: synchronous, start and done, wrapped in async-start, fused",
    ("collective", "collectives"),
    _rows,
    keys_and_instructions(
        "kind=all-gather, dtype=float",
        key("kind", choice("collective", lambda: {kind.value for kind in SYNC_COLLECTIVES}),
            "opcode of the collective, without -start",
            lambda collective: (collective.kind.value,)),
        key("dtype", TYPE, "element type of the data, or `float`, `int`, `complex`, `f8`",
            lambda collective: collective.types),
        key("form", choice("form", lambda: {form.value for form in Form}),
            "way it is written: sync, start/done, async, fusion",
            lambda collective: (collective.form.value,)),
        key("group_size", NUMBER, "number of devices that meet",
            lambda collective: tuple(collective.group_sizes)),
        key("axis", TEXT, "axis of the mesh along which devices meet, where groups name it",
            lambda collective: collective.axes),
        key("payload", SIZE, "the larger of what it takes and what it leaves, in one run",
            lambda collective: (collective.payload,)),
        key("is-degenerate", FLAG, "no device sends anything to another",
            lambda collective: collective.wire == 0),
    ),
    (
        count(),
        Measure("bytes", "payload, as often as they run: the larger of what each takes and leaves",
                BYTES, lambda view: per_run(view, _payload), doubt=unknown_runs),
        Measure("wire_bytes", "bytes that one device sends, as often as they run", BYTES,
                lambda view: per_run(view, _wire), doubt=unknown_runs),
        Measure("static_bytes", "payload, each collective once", BYTES, lambda view: _payload),
        runs(),
        SHAPE,
        OP_NAME,
    ),
    lambda view, term: not_partitioned(view),
)  # fmt: skip
