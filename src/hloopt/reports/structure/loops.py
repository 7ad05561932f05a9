"""The report on while loops: trips and where their number comes from, state, collectives."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.calls import callees_first
from hloopt.analysis.loops.nesting import collectives_by_run, nested_loops
from hloopt.analysis.loops.trip_count import LoopTrips, loop_trips
from hloopt.analysis.source_lines import SourceLines
from hloopt.ir import Instruction, Module
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.ir.sources.source_stacks import op_name_of


@dataclass(frozen=True, slots=True)
class Counter:
    """The comparison in a loop's condition: it goes on while `element DIRECTION limit`."""

    element: int
    init: int | None
    step: int | None
    direction: str
    limit: int | None
    """Less what is added to the element before it is compared. None where not constant, as the
    others."""


@dataclass(frozen=True, slots=True)
class LoopReport:
    """One while loop."""

    name: str
    op_name: str
    source_line: str
    """The line of the program: `model.py:12`."""
    computation: str
    depth: int
    """The number of loops it is in."""
    trips: int | None
    source: str
    """The origin of `trips`: "computed" from counter and limit, "tried" by running the counter,
    "stated" as known_trip_count, or "unknown"."""
    stated: int | None
    """The known_trip_count of the backend_config."""
    disagrees: bool
    """Whether that is another number than body and condition tell."""
    reason: str
    """The reason why body and condition do not tell the trips; else empty."""
    counter: Counter | None
    state_bytes: int
    body: str
    instructions: int
    """In the body, without what it calls."""
    collectives: dict[str, int]
    """Collectives of one trip by opcode, with calls but without loops inside."""


def analyze_loops(module: Module) -> list[LoopReport]:
    """All while loops, each before those in it. O(instructions), beside the trip counts."""
    order = list(reversed(callees_first(module)))
    collectives = collectives_by_run(order)
    lines = SourceLines(module)
    return [
        _report(loop, lines.of(loop).label, depth, collectives[loop.called[0]])
        for loop, depth in nested_loops(order)
    ]


def _report(
    loop: Instruction, source_line: str, depth: int, collectives: dict[str, int]
) -> LoopReport:
    trips = loop_trips(loop)
    return LoopReport(
        name=loop.name,
        op_name=op_name_of(loop),
        source_line=source_line,
        computation=loop.parent.name,
        depth=depth,
        trips=trips.count,
        source=_source(trips),
        stated=trips.stated,
        disagrees=trips.disagrees,
        reason=trips.reason,
        counter=_counter(trips),
        state_bytes=sum(shape_bytes(leaf) for leaf in loop.shape.leaves()),
        body=loop.called[0].name,
        instructions=len(loop.called[0]),
        collectives=collectives,
    )


def _source(trips: LoopTrips) -> str:
    if trips.computed is not None:
        return "tried" if trips.is_tried else "computed"
    return "unknown" if trips.stated is None else "stated"


def _counter(trips: LoopTrips) -> Counter | None:
    comparison, variable = trips.comparison, trips.variable
    if comparison is None:
        return None
    limit = None if comparison.limit is None else comparison.limit - comparison.offset
    init, step = (None, None) if variable is None else (variable.init, variable.step)
    return Counter(comparison.element, init, step, comparison.direction, limit)
