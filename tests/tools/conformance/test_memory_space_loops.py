"""Records about plans for unrolled loops, and whether an assignment follows one."""

from __future__ import annotations

from typing import Any

import pytest

from conformance_lib.records import Record
from conformance_lib.runner import run_record
from hloopt.pass_framework.registry import create_pass

STEPS = [
    "{}op0 = f32[4] add(v, v)",
    "{}op1 = f32[4] multiply({}op0, {}op0)",
    "{}op2 = f32[4] subtract({}op1, {}op0)",
    "{}op3 = f32[4] divide({}op2, {}w)",
]
NAMES = ("prev_", "", "next_")
TEXT = "\n".join(
    [
        "HloModule m, is_scheduled=true",
        "ENTRY e { p = f32[4] parameter(0)",
        *(f"{prefix}w = f32[4] parameter({n})" for n, prefix in enumerate(NAMES, 1)),
        "u = f32[4] parameter(4)",
        "v = f32[4] negate(p)",
        *(step.replace("{}", prefix) for prefix in NAMES for step in STEPS),
        "ROOT root = tuple(prev_op3, op3, next_op3) }",
    ]
)
OPTIONS: dict[str, Any] = {
    "max_size_in_bytes": 256,
    "alternate_memory_space": 1,
    "cost_model": {
        "flops_per_second": 16,
        "default_mem_bandwidth_bytes_per_second": 32,
        "alternate_mem_read_bandwidth_bytes_per_second": 128,
        "alternate_mem_write_bandwidth_bytes_per_second": 128,
    },
    "memory_bound_loop_optimizer_options": {"enabled": True, "desired_copy_ratio": 0.7},
}
LOOP = [10, 14]
SLOW = {
    "kind": "cost-analysis",
    "min_overlap_to_async_copy_ratio": 8.0,
    "preferred_overlap_to_async_copy_ratio": 8.0,
    "max_overlap_to_mem_size_async_copy_ratio": 100.0,
}
"""Copies start eight times as long before their uses as they take."""


def failures(
    pass_name: str, expected: dict[str, Any], text: str = TEXT, **options: object
) -> list[str]:
    given = OPTIONS | options
    fields = {"id": "t", "pass": pass_name, "hlo": text, "options": given, "expect": [expected]}
    return run_record(Record("t", fields), create_pass).failures


def planned(expected: dict[str, Any]) -> list[str]:
    return failures("memory-bound-loop-optimizer", expected, loop=LOOP)


def assigned(expected: dict[str, Any], text: str = TEXT, **options: object) -> list[str]:
    picker = {"kind": "instruction-count", "min_overlap": 0, "max_overlap": 20}
    more = {"prefetch_interval_picker": picker, "enable_cross_program_prefetch": False, **options}
    return failures("memory-space-assignment", expected, text, **more)


@pytest.mark.parametrize(
    ("holds", "fails"),
    [
        ({"loop_seconds": 1.875}, {"loop_seconds": 1.88}),
        ({"loop_seconds": ">1.8"}, {"loop_seconds": ">1.9"}),
        ({"loop_memory_used": 80}, {"loop_memory_used": "<80"}),
        ({"loop_memory_used_at": [32, 64, 80, 48]}, {"loop_memory_used_at": [32, 64, 80, 80]}),
        ({"loop_memory_used_at": {"2": 80}}, {"loop_memory_used_at": {"2": 64}}),
        (
            {"loop_allocations_in_alternate_memory": 5},
            {"loop_allocations_in_alternate_memory": 4},
        ),
        ({"loop_uses_allocated_once": ["op0", "op3"]}, {"loop_uses_allocated_once": ["prev_op0"]}),
        ({"loop_prefetches": {"count": 1}}, {"loop_prefetches": {"count": 2}}),
    ],
)
def test_answers_about_a_plan_are_compared(holds: dict[str, Any], fails: dict[str, Any]) -> None:
    assert planned(holds) == []
    assert planned(fails) != []


PREFETCH = {"value": "w", "first_use": "op3", "done_before": 3, "start_after": 0}


@pytest.mark.parametrize(
    "other",
    [{}, {"value": "v"}, {"first_use": "op2"}, {"done_before": 2}, {"start_after": ">0"}],
)
def test_each_prefetch_wanted_is_met_by_one_of_its_own(other: dict[str, Any]) -> None:
    assert planned({"loop_prefetches": {"some": [PREFETCH]}}) == []
    second = [PREFETCH] if not other else []
    assert planned({"loop_prefetches": {"some": [PREFETCH | other, *second]}}) != []


def test_prefetches_that_start_together() -> None:
    assert planned({"loop_prefetches": {"same_start": ["op3"]}}) == []
    (message,) = planned({"loop_prefetches": {"same_start": ["op3", "op2"]}})
    assert "there are not prefetches for all of op3, op2" in message


def test_an_assignment_follows_the_plan() -> None:
    assert assigned({"follows_loop_plan": {"loop": LOOP}}) == []
    (message,) = assigned(
        {"follows_loop_plan": {"loop": LOOP}}, memory_bound_loop_optimizer_options={}
    )
    assert "no loop was planned" in message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_outstanding_prefetches": 0}, "planned PREFETCH"),
        ({"positions_not_allowed": {"names": ["op0"]}}, "expected memory space 1"),
        ({"prefetch_interval_picker": SLOW}, "starts after"),
    ],
)
def test_an_assignment_that_does_not_follow_the_plan_fails(
    options: dict[str, Any], message: str
) -> None:
    found = assigned({"follows_loop_plan": {"loop": LOOP}}, **options)
    assert any(message in each for each in found), found


def test_operands_without_a_plan_are_passed_over_if_the_record_says_so() -> None:
    """The third operation reads what the one before it gave: such a value is left alone."""
    text = TEXT.replace("subtract(op1, op0)", "subtract(op1, prev_op2)")
    text = text.replace("subtract(next_op1, next_op0)", "subtract(next_op1, op2)")
    text = text.replace("subtract(prev_op1, prev_op0)", "subtract(prev_op1, u)")
    for more, is_met in (({}, False), ({"unsupported": True}, True)):
        found = assigned({"follows_loop_plan": {"loop": LOOP, **more}}, text)
        assert (not any("is not planned" in each for each in found)) == is_met, found
