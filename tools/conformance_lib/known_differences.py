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
    "while_loop_constant_sinking_test/SinkWithNestedLoopsSharedCall": Difference(
        "both loops take a constant; the test's own comments expect `.sunk` bodies",
        [({"changed": False}, {"changed": True})],
    ),
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

_ALGSIMP = "algebraic_simplifier_test/"
DIFFERENCES |= {
    f"{_ALGSIMP}CopyWithDifferentLayout": Difference(
        "the text gives both shapes one layout, so that the copy goes as in CopyWithSameLayout; "
        "XLA's test sets another layout after reading it",
        [
            ({"changed": False}, {"changed": True}),
            ({"root_pattern": ["copy", ["parameter", {"index": 0}]]}, {"root_opcode": "parameter"}),
        ],
    ),
    f"{_ALGSIMP}ReshapeOfTransposeOfRngToRng": Difference(
        "a transposed rng draws its numbers in another order than an rng of that shape: only a "
        "reshape of one keeps the values",
        [
            ({"changed": True}, {"changed": False}),
            ({"root_pattern": "rng"}, {"root_pattern": ["reshape", ["transpose", "rng"]]}),
        ],
    ),
    f"{_ALGSIMP}DynamicSliceOfBroadcastPreserveLayout": Difference(
        "the result has the whole layout of what it stands for, tiles included",
        [({"shape": {"root": "f32[5,5,5]{2,0,1}"}}, {"shape": {"root": "f32[5,5,5]"}})],
    ),
    f"{_ALGSIMP}MaxOfClamp": Difference(
        "where the lower bound is more than the upper one, clamp gives the upper one, and the "
        "maximum with the lower bound is another value; ours wants constants in order",
        [
            ({"changed": True}, {"changed": False}),
            (
                {
                    "root_pattern": [
                        "clamp",
                        ["parameter", {"index": 0}],
                        ["parameter", {"index": 1}],
                        ["parameter", {"index": 2}],
                    ]
                },
                {"root_opcode": "maximum"},
            ),
        ],
    ),
    f"{_ALGSIMP}CopyBitcastCopyDimSize1": Difference(
        "ours does not pull layouts of copies through bitcasts",
        [
            (
                {"root_pattern": ["bitcast", ["bitcast", ["copy", "parameter"]]]},
                {"root_pattern": ["bitcast", ["bitcast", ["copy", ["bitcast", "parameter"]]]]},
            )
        ],
    ),
    f"{_ALGSIMP}SquaredComplexSqrtIsFloat": Difference(
        "the square root of the square of a complex number is that number or its negative, not "
        "its absolute value",
        [
            ({"changed": True}, {"changed": False}),
            (
                {"root_pattern": ["convert", ["abs", ["parameter", {"index": 0}]]]},
                {"root_opcode": "sqrt"},
            ),
        ],
    ),
    **{
        f"host_offload_legalize_test/{name}": Difference(
            "the bitcast does more than to rename dimensions: the values that it permutes by one "
            "layout are others by another",
            [
                ({"changed": True}, {"changed": False}),
                (
                    {"layout": {"%custom-call": moved, "%custom-call.user(0)": copied}},
                    {"layout": {"%custom-call": kept, "%bitcast": kept}},
                ),
                (
                    {"pattern": "copy", "at": "%custom-call.user(0)"},
                    {"pattern": "copy", "at": "%bitcast.op(0)"},
                ),
            ],
        )
        for name, moved, copied, kept in (
            (
                "MoveCopyOverBitcast_2",
                *("{4,3,2,1,0:T(4,128)(2,1)}", "{3,4,2,1,0:T(8,128)(2,1)}"),
                "{4,3,1,2,0:T(8,128)(2,1)}",
            ),
            (
                "MoveCopyOverTransposingBitcast",
                *("{4,2,3,1,0:T(4,128)(2,1)}", "{4,3,2,1,0:T(8,128)(2,1)}"),
                "{4,3,2,1,0:T(8,128)(2,1)}",
            ),
        )
    },
}

_FIVES = (
    "the padded elements are added to a sum, which is another one where a window leaves out its "
    "own padding: XLA:CPU computes both, and they differ"
)
DIFFERENCES |= {
    f"{_ALGSIMP}FoldPadIntoReduceWindow": Difference(
        _FIVES,
        [
            ({"changed": True}, {"changed": False}),
            (
                {
                    "root_pattern": ["reduce-window", ["parameter", {"index": 0}], "constant"],
                    "after_step": 1,
                },
                {"root_pattern": ["reduce-window", "pad", "constant"], "after_step": 1},
            ),
            (
                {
                    "window": {
                        "root": {
                            "0": {"padding_low": 10, "padding_high": 100},
                            "1": {"padding_low": 11, "padding_high": 100},
                            "2": {"padding_low": 10, "padding_high": 100},
                            "3": {"padding_low": 10, "padding_high": 106},
                        }
                    },
                    "after_step": 1,
                },
                {
                    "window": {"root": {"1": {"padding_low": 10, "padding_high": 100}}},
                    "after_step": 1,
                },
            ),
        ],
    ),
    f"{_ALGSIMP}FoldingConvertedPadIntoReduceWindowDisableRewriter": Difference(
        _FIVES,
        [
            ({"changed": True}, {"changed": False}),
            (
                {
                    "root_pattern": [
                        "reduce-window",
                        ["convert", ["parameter", {"index": 0}]],
                        "constant",
                    ]
                },
                {"root_pattern": ["reduce-window", ["convert", "pad"], "constant"]},
            ),
        ],
    ),
}

DIFFERENCES |= {
    "windowed_einsum_handler_test/AgLoopsMultipleConsumersAreChainedWithShardedContratingDim": (
        Difference(
            "4 of 8 shards pass by a device in the loop's 2 trips: what it collects is not what "
            "the all-gather gives",
            [
                (
                    {"pattern": "get-tuple-element", "at": "%dot.7.op(0)"},
                    {"pattern": "all-gather", "at": "%dot.7.op(0)"},
                ),
                (
                    {"attr": {"%dot.7.op(0)": {"index": 5}}},
                    {"count": {"all-gather": 1}, "in": "entry"},
                ),
                (
                    {"same_instruction_pairs": [["%dot.7.op(0).op(0)", "%while"]]},
                    {"same_instruction_pairs": [["%dot.7.op(0).op(0)", "%while.op(0).op(0)"]]},
                ),
                ({"tuple_size": {"%while.op(0)": 7}}, {"tuple_size": {"%while.op(0)": 6}}),
            ],
        )
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
