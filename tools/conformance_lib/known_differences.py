"""Records where hloopt means to differ from XLA: what is expected of it instead, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

from conformance_lib.errors import RecordError
from conformance_lib.records import Record

_MOTION = "while_loop_all_reduce_code_motion_test/"
_MULTIPLIED = (
    "all devices scatter into a sum that all of them have, or nobody can say which: the all-reduce "
    "multiplies what is there by their number in each trip; moved, as in XLA, it no longer does"
)


class Difference(NamedTuple):
    """Expectations of a record, each with the one that takes its place."""

    reason: str
    changes: list[tuple[dict[str, Any], dict[str, Any]]]


DIFFERENCES = {
    **{
        f"{_MOTION}{name}": Difference(
            _MULTIPLIED,
            [
                ({"changed": True}, {"changed": False}),
                (
                    {"count": {"all-reduce": 0}, "in": "body(find(while@entry))"},
                    {"count": {"all-reduce": 1}, "in": "body(find(while@entry))"},
                ),
            ],
        )
        for name in ("ScatterAllReduceAccumulate", "ScatterAllReduceWithSelectAndConvert")
    },
    "memory_space_assignment_test/SyncReplacementAliasingBug": Difference(
        "there is time to load %p0_copy while %p1 and %p2 are read, so it is made asynchronous; "
        "%p0_copy_copy, whose source it is, then stays as it is",
        [
            (
                {
                    "pattern": ["async-copy", "%p0_copy", {"to": 0, "from": 1}],
                    "at": "%while.1.op(0).op(1)",
                },
                {
                    "pattern": [
                        "async-copy",
                        ["async-copy", "%p0.2", {"to": 1, "from": 0}],
                        {"to": 0, "from": 1},
                    ],
                    "at": "%while.1.op(0).op(1)",
                },
            ),
            (
                {
                    "pattern": ["async-copy", "%while.1.op(0).op(1)", {"to": 1, "from": 0}],
                    "at": "%while.1.op(0).op(2)",
                },
                {
                    "pattern": ["async-copy", "%p0_copy_copy", {"to": 1, "from": 0}],
                    "at": "%while.1.op(0).op(2)",
                },
            ),
        ],
    ),
}


def with_known_differences(record: Record) -> tuple[Record, str | None]:
    """The record with what is expected of hloopt, and why that is something else, if it is.

    Raises RecordError where the record does not expect what is replaced.
    """
    difference = DIFFERENCES.get(record.id)
    if difference is None:
        return record, None
    expectations = list(record.expectations)
    for theirs, ours in difference.changes:
        if theirs not in expectations:
            raise RecordError(f"the known difference {theirs} is not in the record any more")
        expectations[expectations.index(theirs)] = ours
    return replace(record, fields={**record.fields, "expect": expectations}), difference.reason
