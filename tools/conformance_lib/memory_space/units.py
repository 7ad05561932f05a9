"""Records that ask one component of memory space assignment, without a module."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import compare
from conformance_lib.forms import (
    BOOL,
    INT,
    NUMBER,
    TEXT,
    Form,
    either,
    keys,
    list_of,
    mapping,
    only,
    optional_list,
    row,
    unknown_words,
)
from conformance_lib.records import Record
from hloopt.memory_space.costs.slice_times import pick_slice_starts
from hloopt.memory_space.heap.loop_heap import LoopAllocation, LoopHeap
from hloopt.memory_space.heap.repacking import RepackBlock, RepackSlice, best_fit_repack
from hloopt.memory_space.ledger.copy_ordering import CopyOrdering
from hloopt.memory_space.ledger.copy_resource import CopyResource

Unit = Callable[[Record], Iterator[str]]
"""Yields the mismatches with a record. Raises RecordError for what has no meaning in it."""

_RELATIVE = 1e-6
"""The precision of seconds: XLA's are of 32 bits."""
_SILENT = ("add", "remove")
"""Steps that ask nothing."""


def _record(expected: Form, options: Form | None = None) -> Form:
    """The form of a record without a module."""
    needed = {"id": TEXT, "pass": TEXT, "expect": list_of(expected)}
    if options is not None:
        needed["options"] = options
    return keys(needed, {"note": TEXT}, what="record field")


def _steps(orders: Mapping[str, Form], questions: Mapping[str, Form]) -> Form:
    """The form of an expectation of steps; those that are questions have their answer in `is`."""
    forms = {word: keys({word: form}) for word, form in orders.items()}
    forms |= {word: keys({word: form, "is": BOOL}) for word, form in questions.items()}

    def problem(step: object) -> str | None:
        if not isinstance(step, dict) or not (words := [word for word in step if word != "is"]):
            return f"{step} is not a step"
        return unknown_words("step", words, forms) or forms[words[0]].problem(step)

    inner = frozenset(word for form in forms.values() for word in form.words)
    return keys({"steps": list_of(Form(problem, inner))}, what="expectation")


def _demand(record: Record, form: Form) -> Mapping[str, Any]:
    """The options of a record. Raises RecordError for a record that is not of the form."""
    if reason := form.problem(dict(record.fields)):
        raise RecordError(reason)
    options: Mapping[str, Any] = record.fields.get("options", {})
    return options


def _each_step(expected: Mapping[str, Any]) -> Iterator[tuple[str, str, Any, bool]]:
    """A description of each step, its word, its value and the answer that it expects, if any.

    Raises RecordError where no step asks anything.
    """
    steps = expected["steps"]
    if all(word in _SILENT for step in steps for word in step):
        raise RecordError("the steps ask nothing: any outcome would pass")
    for number, step in enumerate(steps):
        word = next(word for word in step if word != "is")
        yield f"step {number}, {word} {step[word]}", word, step[word], step.get("is", False)


# -- asynchronous copies -------------------------------------------------------------------------

_ORDERING = _record(_steps({"add": row(INT, INT, INT), "remove": INT}, {"violates": row(INT, INT)}))
_COPY = row(INT, INT, NUMBER)
_RESOURCE = _record(
    _steps(
        {"add": row(INT, INT, NUMBER, INT), "remove": INT, "resources": optional_list(NUMBER)},
        {"has_enough": _COPY, "has_enough_together": optional_list(_COPY)},
    ),
    keys({"resource": optional_list(NUMBER)}),
)


def _async_copy_ordering(record: Record) -> Iterator[str]:
    _demand(record, _ORDERING)
    for expected in record.expectations:
        ordering = CopyOrdering()
        known: set[int] = set()
        for what, word, value, answer in _each_step(expected):
            match word:
                case "add":
                    _demand_new(what, value[2], known)
                    ordering.add(*value)
                case "remove":
                    _demand_known(what, value, known)
                    ordering.remove(value)
                case _:
                    yield from compare(what, ordering.violates(*value), answer)


def _async_copy_resource(record: Record) -> Iterator[str]:
    options = _demand(record, _RESOURCE)
    for expected in record.expectations:
        resource = CopyResource(options["resource"])
        known: set[int] = set()
        for what, word, value, answer in _each_step(expected):
            match word:
                case "add":
                    _demand_new(what, value[3], known)
                    if not resource.has_enough(*value[:3]):
                        yield f"{what}: there is not enough"
                        break
                    resource.add(*value)
                case "remove":
                    _demand_known(what, value, known)
                    resource.remove(value)
                case "has_enough":
                    yield from compare(what, resource.has_enough(*value), answer)
                case "has_enough_together":
                    yield from compare(what, resource.has_enough_together(value), answer)
                case _:
                    yield from _compare_seconds(what, resource.free(), value)


def _demand_new(what: str, key: int, known: set[int]) -> None:
    if key in known:
        raise RecordError(f"{what}: there is a {key} already")
    known.add(key)


def _demand_known(what: str, key: int, known: set[int]) -> None:
    if key not in known:
        raise RecordError(f"{what}: there is no {key}")
    known.remove(key)


def _compare_seconds(what: str, found: list[float], expected: list[float]) -> Iterator[str]:
    is_same = len(found) == len(expected) and all(
        math.isclose(ours, theirs, rel_tol=_RELATIVE, abs_tol=_RELATIVE * max(found))
        for ours, theirs in zip(found, expected, strict=True)
    )
    if not is_same:
        yield f"{what}: found {found}"


# -- sliced prefetches ---------------------------------------------------------------------------

_SLICED = _record(
    keys({"exclusive_starts": list_of(INT)}, what="expectation"),
    keys(
        {"seconds": list_of(NUMBER), "slices": INT, "exclusive_start": INT, "end": INT},
        {"computations": list_of(TEXT)},
        what="option",
    ),
)


def _sliced_prefetch_starts(record: Record) -> Iterator[str]:
    options = _demand(record, _SLICED)
    seconds, start, end = options["seconds"], options["exclusive_start"], options["end"]
    computations = options.get("computations", ["ENTRY"] * len(seconds))
    if len(computations) != len(seconds):
        raise RecordError("there is not one computation per time")
    if options["slices"] < 1 or not -1 <= start < len(seconds) or not 0 <= end <= len(seconds):
        raise RecordError("the prefetch has no slices, or is not within the times")
    own = computations[max(start, 0)]  # what starts before all starts where the first one does
    found = pick_slice_starts(
        *(options["slices"], start, end),
        lambda first, last: math.fsum(seconds[first + 1 : last]),
        lambda time: computations[time] == own,
    )
    for expected in record.expectations:
        yield from compare("exclusive_starts", found, expected["exclusive_starts"])


# -- repacking -----------------------------------------------------------------------------------

_OFFSET = either(INT, only(None))
_BLOCK = keys(
    {"start": INT, "end": INT, "size": INT},
    {
        "offset": _OFFSET,
        "group": TEXT,
        "slices": list_of(keys({"size": INT, "start": INT}, {"offset": _OFFSET})),
    },
)
_PLACED = keys({}, {"size": INT, "offset": INT, "start": INT})
_REPACK = _record(
    keys(
        {},
        {
            "repacked": BOOL,
            "offsets": list_of(_OFFSET),
            "slices_placed": mapping(TEXT, list_of(_PLACED)),
        },
        what="expectation",
    ),
    keys(
        {"max_size_in_bytes": INT, "blocks": optional_list(_BLOCK)},
        {
            "alignment_in_bytes": INT,
            "order": only("given"),
            "slice_time_permutations": only("all", "preferred"),
        },
        what="option",
    ),
)


def _best_fit_repack(record: Record) -> Iterator[str]:
    options = _demand(record, _REPACK)
    blocks = [_block(**fields) for fields in options["blocks"]]
    repacked = best_fit_repack(
        *(blocks, options["max_size_in_bytes"], options.get("alignment_in_bytes", 1)),
        every_permutation=options.get("slice_time_permutations", "all") == "all",
        keep_order="order" in options,
    )
    for expected in record.expectations:
        if "repacked" in expected:
            yield from compare("repacked", repacked, expected["repacked"])
        if "offsets" in expected:
            yield from compare("offsets", [b.offset for b in blocks], expected["offsets"])
        for number, placed in expected.get("slices_placed", {}).items():
            if not number.isdecimal() or int(number) >= len(blocks):
                raise RecordError(f"slices_placed: there is no block {number}")
            yield from _compare_slices(number, blocks[int(number)].slices, placed)


def _block(slices: Sequence[Mapping[str, Any]] = (), **fields: Any) -> RepackBlock:
    return RepackBlock(**fields, slices=[RepackSlice(**part) for part in slices])


def _compare_slices(
    number: str, slices: list[RepackSlice], expected: list[Mapping[str, int]]
) -> Iterator[str]:
    same_count = len(slices) == len(expected)
    if not same_count or any(
        getattr(part, field) != value
        for part, fields in zip(slices, expected, strict=True)
        for field, value in fields.items()
    ):
        yield f"slices of block {number}: expected {expected}, found {slices}"


# -- memory-bound loops --------------------------------------------------------------------------

_RANGE_AND_SIZE = row(INT, INT, INT)
_FINDS = ("allocate", "allocate_same", "find", "find_same")
_HEAP = _record(
    _steps(
        {"remove": INT, "last_offset": INT, "remaining": optional_list(INT)},
        dict.fromkeys(_FINDS, _RANGE_AND_SIZE),
    ),
    keys({"max_size_in_bytes": INT, "loop_size": INT}, {"alignment_in_bytes": INT}, what="option"),
)


def _loop_optimizer_heap(record: Record) -> Iterator[str]:
    options = _demand(record, _HEAP)
    size, loop_size = options["max_size_in_bytes"], options["loop_size"]
    for expected in record.expectations:
        heap = LoopHeap(size, loop_size, options.get("alignment_in_bytes", 1))
        allocated: list[LoopAllocation | None] = []
        for what, word, value, answer in _each_step(expected):
            match word:
                case "remove":
                    heap.remove(_allocation(what, allocated, value))
                    allocated[value] = None
                case "last_offset":
                    yield from compare(what, heap.last_offset, value)
                case "remaining":
                    yield from compare(what, heap.remaining(), value)
                case _:
                    begin, end, _ = value
                    if not -loop_size <= begin <= end < 2 * loop_size:
                        raise RecordError(f"{what}: no range of an iteration and its neighbours")
                    found = getattr(heap, word)(*value)
                    if found and word.startswith("allocate"):
                        allocated.append(found)
                    yield from compare(what, found is not None, answer)


def _allocation(what: str, allocated: list[LoopAllocation | None], number: int) -> LoopAllocation:
    """The allocation with a number, from 0. Raises RecordError where it is not there any more."""
    found = allocated[number] if 0 <= number < len(allocated) else None
    if found is None:
        raise RecordError(f"{what}: there is no such allocation")
    return found


UNITS: dict[str, Unit] = {
    "async-copy-ordering": _async_copy_ordering,
    "async-copy-resource": _async_copy_resource,
    "sliced-prefetch-starts": _sliced_prefetch_starts,
    "best-fit-repack": _best_fit_repack,
    "loop-optimizer-heap": _loop_optimizer_heap,
}
"""The components by the pass names of their records."""

WORDS = frozenset(
    (*UNITS, *(w for f in (_ORDERING, _RESOURCE, _SLICED, _REPACK, _HEAP) for w in f.words))
)
