"""Expectations about schedules: one function per key of a record's `expect`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from re import fullmatch
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import compare
from conformance_lib.scheduling.outcome import RunOutcome
from conformance_lib.scheduling.references import find, find_computation
from hloopt.analysis.async_operations import wrapped
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Computation, Instruction
from hloopt.ir.attributes.backend_config import backend_config, is_sync
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.values import parse_frontend_attributes
from hloopt.memory.schedulers import schedule_module

Check = Callable[["View", Any], Iterator[str]]
_CHECKS: dict[str, Check] = {}


class View:
    """A run as seen from one computation."""

    def __init__(self, outcome: RunOutcome, computation: Computation) -> None:
        self.outcome = outcome
        self.computation = computation
        self.order = list(computation.instructions)
        self._position = {instruction: n for n, instruction in enumerate(self.order)}

    def find(self, reference: Any) -> Instruction:
        return find(self.outcome.module, self.computation, reference)

    def position(self, reference: Any) -> int:
        return self._position[self.find(reference)]


def failures(
    outcome: RunOutcome, expected: Mapping[str, Any], scope: str | None = None
) -> Iterator[str]:
    """What of one expectation does not hold. Raises RecordError for one that is not known."""
    scope = expected.get("in", scope)
    keys = expected.keys() - {"in", "error_kind"}
    if unknown := keys - _CHECKS.keys():
        raise RecordError(f"unknown expectation: {', '.join(sorted(unknown))}")
    if outcome.error is not None and "error" not in keys:
        yield f"{expected}: the run failed: {outcome.error.message}"
        return
    view = View(outcome, find_computation(outcome.module, scope))
    for key in sorted(keys):
        for found in _CHECKS[key](view, expected[key]):
            yield f"{key} {expected[key]}: {found}"


def differences_across(
    outcomes: Mapping[str, RunOutcome], expected: Mapping[str, Any]
) -> Iterator[str]:
    """What of an expectation about several runs does not hold. Raises RecordError."""
    match expected:
        case {"same_fingerprint_before_lhs": [one, other], **rest} if not rest:
            found = [_fingerprint(outcomes[name]) for name in (one, other)]
            yield from compare("fingerprints", *found)
        case {"ops_between_pairs_differ": {"runs": runs, "pairs": pairs} as between, **rest} if (
            not rest
        ):
            counts = [
                _counts_between(View(outcomes[name], outcomes[name].module.entry), between)
                for name in runs
            ]
            for number in pairs:
                if len({found[number] for found in counts}) < len(counts):
                    yield f"pair {number}: the same number in {runs}: {counts}"
        case _:
            raise RecordError(f"unknown expectation across runs: {expected}")


def _check(key: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        _CHECKS[key] = check
        return check

    return register


# -- the run --------------------------------------------------------------------------------------


@_check("ok")
def _ok(view: View, expected: bool) -> Iterator[str]:
    yield from compare("ok", view.outcome.error is None, expected)


@_check("error")
def _error(view: View, text: str) -> Iterator[str]:
    error = view.outcome.error
    if error is None:
        yield "the run did not fail"
    elif text not in error.message:
        yield f"the message is: {error.message}"


@_check("changed")
def _changed(view: View, expected: bool) -> Iterator[str]:
    yield from compare("changed", view.outcome.changed, expected)


@_check("peak_memory_at_most")
def _peak_at_most(view: View, most: int) -> Iterator[str]:
    peak = view.outcome.peak_memory
    if peak is None or peak > most:
        yield f"the peak is {peak}"


@_check("peak_memory_equals")
def _peak_equals(view: View, expected: int) -> Iterator[str]:
    yield from compare("peak", view.outcome.peak_memory, expected)


@_check("scheduler_memory_limit_at_least")
def _limit_at_least(view: View, least: int) -> Iterator[str]:
    limit = view.outcome.memory_limit
    if limit is None or limit < least:
        yield f"the limit is {limit}"


@_check("fingerprint_before_lhs")
def _has_fingerprint(view: View, expected: bool) -> Iterator[str]:
    found = _fingerprint(view.outcome)
    if not fullmatch("[0-9a-f]{32}", found):
        yield f"the fingerprint is {found!r}"


def _fingerprint(outcome: RunOutcome) -> str:
    text = outcome.module.attributes.get("frontend_attributes", "{}")
    return parse_frontend_attributes(text).get("fingerprint_before_lhs", "")


@_check("repeatable")
def _repeatable(view: View, expected: list[str]) -> Iterator[str]:
    for what in expected:
        yield from compare(what, view.outcome.repeated.get(what), True)


@_check("any_of")
def _any_of(view: View, lists: list[list[Mapping[str, Any]]]) -> Iterator[str]:
    found = [
        [f for one in every for f in failures(view.outcome, one, view.computation.name)]
        for every in lists
    ]
    if all(found):
        yield f"none holds: {[messages[0] for messages in found]}"


# -- positions ------------------------------------------------------------------------------------


@_check("before")
def _before(view: View, pair: list[Any]) -> Iterator[str]:
    first, second = map(view.position, pair)
    if first >= second:
        yield f"they are at {first} and {second}"


@_check("not_before")
def _not_before(view: View, pair: list[Any]) -> Iterator[str]:
    first, second = map(view.position, pair)
    if first < second:
        yield f"they are at {first} and {second}"


@_check("position_diff")
def _position_diff(view: View, expected: dict[str, Any]) -> Iterator[str]:
    difference = view.position(expected["to"]) - view.position(expected["from"])
    least, most = expected.get("at_least", difference), expected.get("at_most", difference)
    if (
        not least <= expected.get("equals", difference) <= most
        or difference != expected.get("equals", difference)
        or not least <= difference <= most
    ):
        yield f"the difference is {difference}"


@_check("schedule_length")
def _schedule_length(view: View, expected: int) -> Iterator[str]:
    yield from compare("length", len(view.order), expected)


@_check("input_schedule_length")
def _input_length(view: View, expected: int) -> Iterator[str]:
    found = view.outcome.input_lengths.get(view.computation.name)
    yield from compare("length before", found, expected)


@_check("schedule_length_delta")
def _length_delta(view: View, expected: int) -> Iterator[str]:
    before = view.outcome.input_lengths[view.computation.name]
    yield from compare("difference of lengths", len(view.order) - before, expected)


@_check("opcode_at")
def _opcode_at(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("opcode", view.order[expected[0]].opcode.value, expected[1])


@_check("sequence")
def _sequence(view: View, names: list[str]) -> Iterator[str]:
    yield from compare("names", [i.name for i in view.order], names)


@_check("opcode_sequence")
def _opcode_sequence(view: View, opcodes: list[str]) -> Iterator[str]:
    yield from compare("opcodes", [i.opcode.value for i in view.order], opcodes)


@_check("max_in_flight")
def _max_in_flight(view: View, expected: dict[str, Any]) -> Iterator[str]:
    running = most = 0
    for instruction in view.order:
        running += instruction.opcode.value == expected["start"]
        running -= instruction.opcode.value == expected["done"]
        most = max(most, running)
    if most > expected.get("at_most", most) or most != expected.get("equals", most):
        yield f"{most} are in flight"


@_check("ops_between_pairs")
def _ops_between_pairs(view: View, expected: dict[str, Any]) -> Iterator[str]:
    counts = _counts_between(view, expected)
    yield from compare("pairs", len(counts), expected.get("pairs", len(counts)))
    yield from compare("counts", counts, expected.get("counts", counts))
    if expected.get("any_positive") and not any(counts):
        yield f"the counts are {counts}"


def _counts_between(view: View, what: Mapping[str, Any]) -> list[int]:
    """Per start and done, in order of the dones, the instructions between with an opcode."""
    counts: list[int] = []
    begin: int | None = None
    for position, instruction in enumerate(view.order):
        if instruction.opcode.value == what["start"]:
            begin = position
        elif instruction.opcode.value == what["done"] and begin is not None:
            between = view.order[begin:position]
            counts.append(sum(i.opcode.value == what["count"] for i in between))
            begin = None
    return counts


@_check("schedule_valid")
def _schedule_valid(view: View, expected: bool) -> Iterator[str]:
    if not view.outcome.module.is_scheduled:
        yield "the module is not scheduled"
    done: set[Instruction] = set()
    for instruction in view.order:
        if not done.issuperset((*instruction.operands, *instruction.control_predecessors)):
            yield f"%{instruction.name} comes before what it depends on"
        done.add(instruction)


@_check("schedule_complete")
def _schedule_complete(view: View, expected: bool) -> Iterator[str]:
    before = view.outcome.input_lengths[view.computation.name]
    yield from compare("instructions", len(set(view.order)), before)


@_check("has_schedule")
def _has_schedule(view: View, name: str) -> Iterator[str]:
    find_computation(view.outcome.module, name)
    yield from compare("is_scheduled", view.outcome.module.is_scheduled, True)


@_check("memory_scheduler_report")
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


# -- structure ------------------------------------------------------------------------------------


@_check("instruction_count")
def _instruction_count(view: View, expected: int) -> Iterator[str]:
    yield from compare("instructions", len(view.outcome.module.entry), expected)


@_check("opcode_of")
def _opcode_of(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("opcode", view.find(expected[0]).opcode.value, expected[1])


@_check("wrapped_opcode")
def _wrapped_opcode(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("wraps", wrapped(view.find(expected[0])).opcode.value, expected[1])


@_check("operand_count")
def _operand_count(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("operands", len(view.find(expected[0]).operands), expected[1])


@_check("operand_names")
def _operand_names(view: View, expected: list[Any]) -> Iterator[str]:
    names = [operand.name for operand in view.find(expected[0]).operands]
    yield from compare("operands", names, expected[1])


@_check("user_count")
def _user_count(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("users", len(view.find(expected[0]).users), expected[1])


@_check("attr_equals")
def _attr_equals(view: View, expected: list[Any]) -> Iterator[str]:
    text = view.find(expected[0]).attributes.get(expected[1], "").replace(" ", "")
    yield from compare(expected[1], text, expected[2].replace(" ", ""))


@_check("frontend_attribute_equals")
def _frontend_equals(view: View, expected: list[Any]) -> Iterator[str]:
    found = frontend_attribute(view.find(expected[0]), expected[1])
    yield from compare(expected[1], found, expected[2])


@_check("frontend_attribute_present")
def _frontend_present(view: View, expected: list[Any]) -> Iterator[str]:
    if frontend_attribute(view.find(expected[0]), expected[1]) is None:
        yield "it is absent"


@_check("frontend_attribute_absent")
def _frontend_absent(view: View, expected: list[Any]) -> Iterator[str]:
    found = frontend_attribute(view.find(expected[0]), expected[1])
    yield from compare(expected[1], found, None)


@_check("is_sync")
def _is_sync(view: View, expected: list[Any]) -> Iterator[str]:
    yield from compare("is_sync", is_sync(view.find(expected[0])), expected[1])


@_check("backend_config_equals")
def _backend_config_equals(view: View, expected: list[Any]) -> Iterator[str]:
    found: Any = backend_config(view.find(expected[0]))
    for key in expected[1].split("."):
        found = found.get(key) if isinstance(found, Mapping) else None
    yield from compare(expected[1], found, expected[2])


# -- control dependencies -------------------------------------------------------------------------


@_check("has_control_dep")
def _has_control_dep(view: View, pair: list[Any]) -> Iterator[str]:
    first, second = map(view.find, pair)
    if first not in second.control_predecessors:
        yield "there is none"


@_check("not_has_control_dep")
def _not_has_control_dep(view: View, pair: list[Any]) -> Iterator[str]:
    first, second = map(view.find, pair)
    if first in second.control_predecessors:
        yield "there is one"


@_check("control_predecessors")
def _control_predecessors(view: View, expected: list[Any]) -> Iterator[str]:
    found = list(view.find(expected[0]).control_predecessors)
    if found != [view.find(one) for one in expected[1]]:
        yield f"they are {[i.name for i in found]}"


@_check("control_predecessor_at")
def _control_predecessor_at(view: View, expected: list[Any]) -> Iterator[str]:
    found = list(view.find(expected[0]).control_predecessors)
    if len(found) <= expected[1] or found[expected[1]] is not view.find(expected[2]):
        yield f"they are {[i.name for i in found]}"


@_check("control_predecessor_count")
def _control_predecessor_count(view: View, expected: list[Any]) -> Iterator[str]:
    found = list(view.find(expected[0]).control_predecessors).count(view.find(expected[1]))
    yield from compare("number", found, expected[2])
