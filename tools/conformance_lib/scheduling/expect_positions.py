"""Expectations about places in schedules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import compare, demand_some
from conformance_lib.forms import (
    BOOL,
    INT,
    TEXT,
    either,
    keys,
    list_of,
    only,
    row,
)
from conformance_lib.scheduling.expectations import (
    BETWEEN,
    View,
    check,
    counts_between,
)
from conformance_lib.scheduling.references import REFERENCE, find_computation
from conformance_lib.selector_syntax import OPCODE
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Instruction
from hloopt.memory.schedulers import schedule_module

_POSITION_DIFF = keys(
    {"from": REFERENCE, "to": REFERENCE}, {"equals": INT, "at_least": INT, "at_most": INT}
)
_OPCODES = either(list_of(OPCODE), OPCODE)
_IN_FLIGHT = keys({"start": _OPCODES, "done": _OPCODES}, {"at_most": INT, "equals": INT})
_BETWEEN = keys(
    BETWEEN,
    {"pairs": INT, "counts": list_of(INT), "any_positive": BOOL, "non_overlapping": only(True)},
)
_REPORT = keys(
    {
        "schedulers": list_of(TEXT),
        "selected_index_between": row(INT, INT),
        "all_valid": only(True),
        "all_peaks_positive": only(True),
    }
)


@check("before", row(REFERENCE, REFERENCE))
def _before(view: View, pair: list[Any]) -> Iterator[str]:
    first, second = map(view.position, pair)
    if first >= second:
        yield f"they are at {first} and {second}"


@check("not_before", row(REFERENCE, REFERENCE))
def _not_before(view: View, pair: list[Any]) -> Iterator[str]:
    first, second = map(view.position, pair)
    if first < second:
        yield f"they are at {first} and {second}"


@check("position_diff", _POSITION_DIFF)
def _position_diff(view: View, expected: dict[str, Any]) -> Iterator[str]:
    if not expected.keys() - {"from", "to"}:
        raise RecordError("no bound on the difference")
    difference = view.position(expected["to"]) - view.position(expected["from"])
    least, most = expected.get("at_least", difference), expected.get("at_most", difference)
    if (
        not least <= expected.get("equals", difference) <= most
        or difference != expected.get("equals", difference)
        or not least <= difference <= most
    ):
        yield f"the difference is {difference}"


@check("schedule_length", INT)
def _schedule_length(view: View, expected: int) -> Iterator[str]:
    yield from compare("length", len(view.order), expected)


@check("input_schedule_length", INT)
def _input_length(view: View, expected: int) -> Iterator[str]:
    found = view.outcome.input_lengths.get(view.computation.name)
    yield from compare("length before", found, expected)


@check("schedule_length_delta", INT)
def _length_delta(view: View, expected: int) -> Iterator[str]:
    before = view.outcome.input_lengths[view.computation.name]
    yield from compare("difference of lengths", len(view.order) - before, expected)


@check("opcode_at", row(INT, OPCODE))
def _opcode_at(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("opcode", view.find({"at": expected[0]}).opcode.value, expected[1])


@check("name_at", row(INT, TEXT))
def _name_at(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("name", view.find({"at": expected[0]}).name, expected[1])


@check("sequence", list_of(TEXT))
def _sequence(view: View, names: list[str]) -> Iterator[str]:
    yield from compare("names", [i.name for i in view.order], names)


@check("opcode_sequence", list_of(OPCODE))
def _opcode_sequence(view: View, opcodes: list[str]) -> Iterator[str]:
    yield from compare("opcodes", [i.opcode.value for i in view.order], opcodes)


@check("max_in_flight", _IN_FLIGHT)
def _max_in_flight(view: View, expected: dict[str, Any]) -> Iterator[str]:
    starts, dones = (
        [opcodes] if isinstance(opcodes, str) else opcodes
        for opcodes in (expected["start"], expected["done"])
    )
    running = most = 0
    for instruction in view.order:
        running += instruction.opcode.value in starts
        running -= instruction.opcode.value in dones
        most = max(most, running)
    demand_some(f"{' or '.join(starts)} in the schedule", range(most))
    if most > expected.get("at_most", most) or most != expected.get("equals", most):
        yield f"{most} are in flight"


@check("ops_between_pairs", _BETWEEN)
def _ops_between_pairs(view: View, expected: dict[str, Any]) -> Iterator[str]:
    counts = counts_between(view, expected)
    yield from compare("pairs", len(counts), expected.get("pairs", len(counts)))
    yield from compare("counts", counts, expected.get("counts", counts))
    demand_some(f"pair of {expected['start']} and {expected['done']}", counts)
    if "any_positive" in expected:
        yield from compare("any count is positive", any(counts), expected["any_positive"])


@check("schedule_valid", only(True))
def _schedule_valid(view: View, expected: bool) -> Iterator[str]:
    if not view.outcome.module.is_scheduled:
        yield "the module is not scheduled"
    done: set[Instruction] = set()
    for instruction in view.order:
        if not done.issuperset((*instruction.operands, *instruction.control_predecessors)):
            yield f"%{instruction.name} comes before what it depends on"
        done.add(instruction)


@check("schedule_complete", only(True))
def _schedule_complete(view: View, expected: bool) -> Iterator[str]:
    before = view.outcome.input_lengths[view.computation.name]
    yield from compare("instructions", len(set(view.order)), before)


@check("has_schedule", TEXT)
def _has_schedule(view: View, name: str) -> Iterator[str]:
    computation = find_computation(view.outcome.module, name)
    yield from compare("is_scheduled", view.outcome.module.is_scheduled, True)
    if view.outcome.unscheduled.get(name) == list(computation.instructions):
        yield f"%{name} has no schedule"


@check("no_schedule", only(True))
def _no_schedule(view: View, expected: bool) -> Iterator[str]:
    yield from compare("is_scheduled", view.outcome.module.is_scheduled, False)


@check("memory_scheduler_report", _REPORT)
def _memory_scheduler_report(view: View, expected: dict[str, Any]) -> Iterator[str]:
    schedule = schedule_module(view.outcome.module)
    yield from compare("schedulers", list(map(str, schedule.peaks)), expected["schedulers"])
    if not all(peak > 0 for peak in schedule.peaks.values()):
        yield f"the peaks are {schedule.peaks}"
    least, most = expected["selected_index_between"]
    if not least <= list(schedule.peaks).index(schedule.algorithm) <= most:
        yield f"{schedule.algorithm} was chosen"
    if expected["all_valid"]:
        FlatSchedule.of(view.outcome.module, schedule.orders)
