"""Records of the parts of memory space assignment that need no module."""

from __future__ import annotations

from typing import Any

import pytest

from conformance_lib.records import Record
from conformance_lib.runner import run_record
from hloopt.pass_framework.registry import create_pass

ORDERING = "async-copy-ordering"
RESOURCE = "async-copy-resource"
SLICES = "sliced-prefetch-starts"
REPACK = "best-fit-repack"
HEAP = "loop-optimizer-heap"

OPTIONS: dict[str, dict[str, Any]] = {
    ORDERING: {},
    RESOURCE: {"resource": [2, 2, 2, 2]},
    SLICES: {"seconds": [1, 1, 1, 1], "slices": 2, "exclusive_start": -1, "end": 4},
    REPACK: {
        "max_size_in_bytes": 10,
        "blocks": [
            {"start": 0, "end": 3, "size": 2, "offset": None, "group": "a"},
            {
                "start": 1,
                "end": 5,
                "size": 4,
                "offset": 0,
                "slices": [
                    {"size": 2, "offset": 0, "start": 1},
                    {"size": 2, "offset": 2, "start": 4},
                ],
            },
        ],
        "alignment_in_bytes": 2,
        "order": "given",
        "slice_time_permutations": "all",
    },
    HEAP: {"max_size_in_bytes": 20, "loop_size": 4, "alignment_in_bytes": 8},
}


def failures(name: str, *expected: dict[str, Any], **options: Any) -> list[str]:
    given = {**OPTIONS[name], **options}
    fields: dict[str, Any] = {"id": "a", "pass": name, "expect": list(expected)}
    if given:
        fields["options"] = given
    outcome = run_record(Record("a", fields), create_pass)
    assert outcome.skip is None
    return outcome.failures


STEPS: list[tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = [
    (ORDERING, [{"add": [1, 9, 5]}], [{"violates": [2, 3], "is": True}]),
    (ORDERING, [{"add": [1, 9, 5]}, {"remove": 5}], [{"violates": [2, 3], "is": False}]),
    (RESOURCE, [{"add": [0, 3, 3, 7]}], [{"has_enough": [0, 3, 1], "is": True}]),
    (RESOURCE, [{"add": [0, 3, 3, 7]}], [{"has_enough": [0, 3, 2], "is": False}]),
    (RESOURCE, [], [{"has_enough_together": [[0, 3, 3], [0, 3, 1]], "is": True}]),
    (RESOURCE, [], [{"has_enough_together": [[0, 3, 3], [0, 3, 2]], "is": False}]),
    (HEAP, [], [{"allocate": [2, 4, 9], "is": True}]),
    (HEAP, [], [{"allocate": [2, 6, 9], "is": False}]),
    (HEAP, [], [{"allocate_same": [0, 3, 9], "is": True}]),
    (HEAP, [], [{"find": [2, 6, 8], "is": True}]),
    (HEAP, [], [{"find_same": [2, 6, 8], "is": False}]),
]


@pytest.mark.parametrize(("name", "before", "questions"), STEPS, ids=str)
def test_the_answers_of_steps_are_compared(
    name: str, before: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> None:
    (question,) = questions
    assert failures(name, {"steps": [*before, question]}) == []
    wrong = {**question, "is": not question["is"]}
    (failure,) = failures(name, {"steps": [*before, wrong]})
    assert f"step {len(before)}" in failure
    assert failure.endswith(f"expected {wrong['is']}, found {question['is']}")


@pytest.mark.parametrize(
    ("name", "steps", "right", "wrong"),
    [
        (
            *(RESOURCE, [{"add": [0, 3, 3, 7]}]),
            *({"resources": [2, 0, 1, 2]}, {"resources": [2, 1, 0, 2]}),
        ),
        (RESOURCE, [], {"resources": [2, 2.0000001, 2, 2]}, {"resources": [2, 2, 2]}),
        (
            *(HEAP, [{"allocate": [1, 2, 9], "is": True}]),
            *({"remaining": [20, 11, 11, 20]}, {"remaining": [20, 11, 11]}),
        ),
        (HEAP, [{"allocate": [1, 2, 9], "is": True}], {"last_offset": 9}, {"last_offset": 16}),
        (
            HEAP,
            [
                {"allocate": [1, 2, 9], "is": True},
                {"find": [1, 2, 9], "is": False},
                {"allocate": [1, 2, 2], "is": True},
                {"remove": 1},
            ],
            {"last_offset": 9},
            {"last_offset": 18},
        ),
    ],
    ids=str,
)
def test_the_state_after_steps_is_compared(
    name: str, steps: list[dict[str, Any]], right: dict[str, Any], wrong: dict[str, Any]
) -> None:
    assert failures(name, {"steps": [*steps, right]}) == []
    assert len(failures(name, {"steps": [*steps, wrong]})) == 1


def test_each_expectation_has_steps_on_an_empty_structure() -> None:
    inside = {"violates": [2, 3], "is": True}
    first = {"steps": [{"add": [1, 9, 0]}, inside]}
    second = {"steps": [{"add": [3, 9, 0]}, {**inside, "is": False}]}
    assert failures(ORDERING, first, second) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (SLICES, {"exclusive_starts": [-1, 1]}),
        (REPACK, {"repacked": True}),
        (REPACK, {"offsets": [0, 0]}),
        (REPACK, {"slices_placed": {"1": [{"size": 2, "offset": 0, "start": 4}, {"start": 1}]}}),
    ],
    ids=str,
)
def test_results_are_compared(name: str, expected: dict[str, Any]) -> None:
    assert failures(name, expected) == []
    changed: Any = {
        "exclusive_starts": [-1, 2],
        "repacked": False,
        "offsets": [0, None],
        "slices_placed": {"1": [{"offset": 0}, {"start": 4}]},
    }
    (key,) = expected
    assert len(failures(name, {key: changed[key]})) == 1


def test_options_of_repacking_count() -> None:
    assert failures(REPACK, {"repacked": False}, {"offsets": [None, 0]}, max_size_in_bytes=3) == []
    below = [{"start": 0, "end": end, "size": 1} for end in (0, 2, 1)]
    slices = [{"size": 1, "start": start} for start in (1, 2, 3)]
    blocks = [*below, {"start": 1, "end": 9, "size": 3, "slices": slices}]
    free: dict[str, Any] = {"blocks": blocks, "alignment_in_bytes": 1}
    assert failures(REPACK, {"offsets": [0, 1, 2, 0]}, **free) == []
    limited = {**free, "slice_time_permutations": "preferred"}
    assert failures(REPACK, {"offsets": [0, 1, 2, 1]}, **limited) == []
    small = [{"start": 0, "end": 3, "size": 1}, {"start": 0, "end": 9, "size": 1}]
    assert failures(REPACK, {"offsets": [0, 2]}, blocks=small) == []
    assert failures(REPACK, {"offsets": [0, 1]}, blocks=small, alignment_in_bytes=1) == []


def test_slices_start_in_the_computation_of_the_first_one() -> None:
    names = ["a", "b", "b", "a"]
    assert failures(SLICES, {"exclusive_starts": [-1, 0]}, computations=names) == []
    assert (
        "one computation per time"
        in failures(SLICES, {"exclusive_starts": [-1, 0]}, computations=names[:3])[0]
    )


@pytest.mark.parametrize(
    ("name", "steps", "message"),
    [
        (ORDERING, [{"add": [1, 2, 0]}], "the steps ask nothing"),
        (ORDERING, [{"violate": [1, 2], "is": True}], "did you mean 'violates'?"),
        (ORDERING, [{"violates": [1, 2]}], "'is' is missing"),
        (ORDERING, [{"is": True}], "is not a step"),
        (ORDERING, [{"remove": 1}, {"violates": [1, 2], "is": False}], "there is no 1"),
        (
            *(ORDERING, [*[{"add": [1, 2, 0]}] * 2, {"violates": [1, 2], "is": False}]),
            "there is a 0 already",
        ),
        (RESOURCE, [{"add": [0, 3, 5, 7]}, {"resources": [2] * 4}], "there is not enough"),
        (RESOURCE, [{"violates": [1, 2], "is": True}], "unknown step: violates"),
        (HEAP, [{"remove": 0}, {"last_offset": 0}], "there is no such allocation"),
        (HEAP, [{"find": [2, 1, 0], "is": True}], "no range of an iteration"),
        (HEAP, [{"find": [-5, 1, 0], "is": True}], "no range of an iteration"),
        (HEAP, [{"find": [0, 8, 0], "is": True}], "no range of an iteration"),
    ],
    ids=str,
)
def test_steps_without_a_meaning_fail(name: str, steps: list[dict[str, Any]], message: str) -> None:
    assert message in failures(name, {"steps": steps})[0]


@pytest.mark.parametrize(
    ("name", "expected", "options", "message"),
    [
        (ORDERING, {"steps": []}, {}, "the list is empty"),
        (ORDERING, {"step": [{"remove": 1}]}, {}, "did you mean 'steps'?"),
        (ORDERING, {"steps": [{"remove": 1}]}, {"resource": [1]}, "unknown record field: options"),
        (RESOURCE, {"steps": [{"resources": []}]}, {"resources": []}, "did you mean 'resource'?"),
        (SLICES, {"exclusive_start": [1]}, {}, "did you mean 'exclusive_starts'?"),
        (SLICES, {"exclusive_starts": [1]}, {"slice": 2}, "did you mean 'slices'?"),
        (SLICES, {"exclusive_starts": [1]}, {"slices": 0}, "the prefetch has no slices"),
        (SLICES, {"exclusive_starts": [1]}, {"end": 5}, "is not within the times"),
        (SLICES, {"exclusive_starts": [1]}, {"exclusive_start": -2}, "is not within the times"),
        (REPACK, {"repacked": 1}, {}, "1 is not true or false"),
        (REPACK, {"slices_placed": {"2": [{"size": 1}]}}, {}, "there is no block 2"),
        (REPACK, {"repacked": True}, {"order": "name"}, "'name' is not one of 'given'"),
        (REPACK, {"repacked": True}, {"max_retries": 1}, "unknown option: max_retries"),
        (HEAP, {"steps": [{"last_offset": 0}]}, {"loop": 6}, "unknown option: loop"),
    ],
    ids=str,
)
def test_words_without_a_meaning_fail(
    name: str, expected: dict[str, Any], options: dict[str, Any], message: str
) -> None:
    assert message in failures(name, expected, **options)[0]


def test_a_module_has_no_meaning_here() -> None:
    fields = {"id": "a", "pass": ORDERING, "hlo": "", "expect": [{"steps": [{"remove": 1}]}]}
    (failure,) = run_record(Record("a", fields), create_pass).failures
    assert "unknown record field: hlo" in failure
