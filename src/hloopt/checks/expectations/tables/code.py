"""Tables of the text itself: instructions, computations, loops."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.checks.doubts import Doubt, not_partitioned, unknown_trips
from hloopt.checks.expectations.doubts import selection_doubt, unknown_runs
from hloopt.checks.expectations.model import Combine, Measure, Row, Table, count
from hloopt.checks.expectations.tables.parts import (
    MAYBE_NUMBER,
    OP_NAME,
    SHAPE,
    SHARDING,
    key,
    keys_and_instructions,
    of_instruction,
    per_run,
    runs,
)
from hloopt.checks.expectations.units import BYTES, COUNT
from hloopt.checks.view import View
from hloopt.ir.opcode import Opcode
from hloopt.query import values
from hloopt.query.keys import Key
from hloopt.query.kinds import FLAG, NAME, NUMBER, SIZE, TEXT
from hloopt.query.vocabulary import vocabulary


def _instruction_rows(view: View) -> list[Row]:
    return [Row(instruction) for instruction in view.subject.module.instructions()]


def _whole_program(view: View, rows: Sequence[Row]) -> Doubt | None:
    return not_partitioned(view)


def _runs_and_partitions(view: View, rows: Sequence[Row]) -> Doubt | None:
    return not_partitioned(view) or unknown_runs(view, rows)


def _result_bytes(row: Row) -> int:
    return values.size(row.instruction.shape)[0]


INSTRUCTIONS = Table(
    "instructions",
    "instructions of all computations, those in fusions too",
    ("instruction", "instructions"),
    _instruction_rows,
    keys_and_instructions("opcode=copy, bytes>1MiB"),
    (
        count(),
        Measure("bytes", "bytes of their results, each instruction once", BYTES,
                lambda view: _result_bytes, doubt=_whole_program),
        Measure("max_bytes", "bytes of the largest result", BYTES,
                lambda view: _result_bytes, Combine.MAX, _whole_program),
        runs(),
        Measure("run_bytes", "bytes of their results, as often as they run", BYTES,
                lambda view: per_run(view, _result_bytes), doubt=_runs_and_partitions),
        SHAPE,
        SHARDING,
        OP_NAME,
        of_instruction("opcode", "opcode", lambda i: i.opcode.value),
    ),
    selection_doubt,
)  # fmt: skip


def _computation_rows(view: View) -> list[Row]:
    return [Row(c.root, c) for c in view.subject.module.computations.values()]


COMPUTATIONS = Table(
    "computations",
    "computations: entry, loop bodies, fusions, reducers",
    ("computation", "computations"),
    _computation_rows,
    vocabulary(
        (
            key("name", NAME, "name of the computation", lambda c: (c.name,)),
            key("instructions", NUMBER, "number of its instructions", lambda c: (len(c),)),
            key("execution_thread", TEXT, "thread that it runs on", values.execution_thread),
            key("called-by", TEXT, "opcode of an instruction that calls it",
                lambda c: tuple({caller.opcode.value for caller in c.callers})),
            key("is-entry", FLAG, "the entry computation", values.is_entry),
            Key("in-loop", FLAG, "the body of a while loop, or what that calls",
                lambda facts: lambda row: facts.is_in_loop(row.record)),
            Key("in-fusion", FLAG, "a fused computation, or what that calls",
                lambda facts: lambda row: facts.is_in_fusion(row.record)),
            Key("in-async", FLAG, "what an async-start runs, or what that calls",
                lambda facts: lambda row: facts.is_in_async(row.record)),
        ),
        None,
        "name=*windowed*",
    ),
    (
        count(),
        Measure("instructions", "instructions in them, together", COUNT,
                lambda view: lambda row: len(row.record)),
        Measure("max_instructions", "instructions in the largest", COUNT,
                lambda view: lambda row: len(row.record), Combine.MAX),
        runs(),
    ),
)  # fmt: skip


def _loop_rows(view: View) -> list[Row]:
    loops = {
        (loop.parent.name, loop.name): loop
        for loop in view.subject.module.instructions(Opcode.WHILE)
    }
    return [Row(loops[each.computation, each.name], each) for each in view.subject.loops]


def _state_bytes(row: Row) -> int:
    size: int = row.record.state_bytes
    return size


def _trips_doubt(view: View, rows: Sequence[Row]) -> Doubt | None:
    return unknown_trips([row.instruction for row in rows if row.record.trips is None])


LOOPS = Table(
    "loops",
    "while loops, as `hloopt analyze loops` has them",
    ("loop", "loops"),
    _loop_rows,
    keys_and_instructions(
        "trips=unknown",
        key("trips", MAYBE_NUMBER, "number of trips, or `unknown`", lambda loop: (loop.trips,)),
        key("from", TEXT, "where the number is from: computed, tried, stated, unknown",
            lambda loop: (loop.source,)),
        key("depth", NUMBER, "number of loops that it is in", lambda loop: (loop.depth,)),
        key("state_bytes", SIZE, "bytes of its state", lambda loop: (loop.state_bytes,)),
        key("body", NAME, "name of its body", lambda loop: (loop.body,)),
        key("collectives", NUMBER, "number of collectives of one trip",
            lambda loop: (sum(loop.collectives.values()),)),
        key("disagrees", FLAG, "its known_trip_count is not what body and condition tell",
            lambda loop: loop.disagrees),
    ),
    (
        count(),
        Measure("trips", "number of trips of each", COUNT,
                lambda view: lambda row: row.record.trips or 0, Combine.EACH, _trips_doubt),
        Measure("state_bytes", "bytes of their state", BYTES, lambda view: _state_bytes,
                doubt=_whole_program),
        Measure("max_state_bytes", "bytes of the largest state", BYTES,
                lambda view: _state_bytes, Combine.MAX, _whole_program),
        runs(),
    ),
)  # fmt: skip
