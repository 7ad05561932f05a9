"""Remarks of memory space assignment: why a value stays outside, and what that costs."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.memory_space.chains import RATES, assign, chain

from hloopt.memory_space.allocation.planning import plan_memory_spaces
from hloopt.memory_space.allocation.requests import Reason
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.memory_space.remarks import lost_by_reason
from hloopt.text import parse_module


def remarks(context: PassContext) -> dict[str, str]:
    return {r.instruction: r.reason for r in context.remarks if r.kind == "missed"}


# -- why a value stays outside --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "options", "name", "reason"),
    [
        (
            chain(6),
            {"max_size_in_bytes": 40},
            "n3",
            "there is no room then; there is no time to prefetch it before a use",
        ),
        (
            chain(8, at_end="add(%n{last}, %n0)"),
            {"max_outstanding_prefetches": 0},
            "n0",
            "a use is too far to stay for without a copy; too many copies are outstanding then",
        ),
        (chain(1), {}, "p1", "there is no time to prefetch it before a use"),
        (chain(6), {"max_outstanding_prefetches": 0}, "p1", "too many copies are outstanding then"),
        (
            chain(6),
            {"cost_model": {**RATES, "fixed_seconds_per_copy": 1.0}},
            "p1",
            "other copies need the bandwidth then",
        ),
        (
            chain(6),
            {"uses_not_allowed": {"names": ["r"]}},
            "p1",
            "a use or a position of it has to be in default memory",
        ),
    ],
    ids=["room", "far", "short", "outstanding", "bandwidth", "required"],
)
def test_what_stays_outside_has_its_reason(
    text: str, options: dict[str, Any], name: str, reason: str
) -> None:
    _, context = assign(text, **options)
    found = remarks(context)[name]
    assert found.startswith("32 bytes read from default memory")
    assert found.endswith(f": {reason}")


def test_a_prefetch_does_not_overtake_another_in_order() -> None:
    text = """HloModule m, is_scheduled=true

ENTRY %e {
  %p0 = f32[8] parameter(0)
  %p1 = f32[4] parameter(1)
  %q = f32[4] parameter(2)
  %a = f32[4] negate(%q)
  %b = f32[4] negate(%a)
  %c = f32[4] negate(%b)
  %d = f32[4] add(%c, %p1)
  %f = f32[4] negate(%d)
  %g = f32[8] negate(%p0)
  ROOT %r = (f32[4], f32[8]) tuple(%f, %g)
}
"""
    picker = {"kind": "instruction-count", "min_overlap": 5, "max_overlap": 8}
    at_once = {"kind": "instruction-count", "min_overlap": 4, "max_overlap": 8}
    _, free = assign(text, prefetch_interval_picker=at_once, max_size_in_bytes=1000)
    assert "p1" not in remarks(free)
    overrides = (
        {
            "hlo_operand_filter": {"instruction_name_regex": "g"},
            "override_options": {"after_instruction": {"instruction_name_regex": "p0"}},
        },
        {
            "hlo_operand_filter": {"instruction_name_regex": "d"},
            "override_options": {"after_instruction": {"instruction_name_regex": "p1"}},
        },
    )
    _, ordered = assign(
        text,
        prefetch_interval_picker={**picker, "min_overlap": 1},
        max_size_in_bytes=1000,
        enforce_prefetch_fifo_order=True,
        preferred_prefetch_overrides=overrides,
    )
    found = remarks(ordered)
    assert any(reason.endswith("its copy would overtake another") for reason in found.values())


@pytest.mark.parametrize(
    ("rates", "cost"),
    [(RATES, ", at most 28.8 us to be gained"), ({}, ", nothing to gain")],
    ids=["bound by memory", "free"],
)
def test_a_remark_says_what_is_lost(rates: dict[str, float], cost: str) -> None:
    options = {"cost_model": {**rates, "fixed_seconds_per_copy": 1.0}}
    _, context = assign(chain(6), **options)
    assert remarks(context)["p1"].startswith(f"32 bytes read from default memory{cost}: ")


def test_small_values_are_not_worth_a_remark() -> None:
    _, context = assign(chain(1), max_size_in_bytes="1MiB")
    assert remarks(context) == {}


def test_a_value_larger_than_alternate_memory_has_its_reason() -> None:
    _, context = assign(chain(2), max_size_in_bytes=16)
    why = "32 bytes read from default memory: it is larger than alternate memory"
    assert remarks(context) == dict.fromkeys(("p0", "p1", "n0", "n1"), why)


def test_a_value_in_another_memory_has_its_reason() -> None:
    text = chain(2).replace("%p1 = f32[8]", "%p1 = f32[8]{0:S(5)}")
    _, context = assign(text)
    assert remarks(context)["p1"].endswith(
        ": a use or a position of it has to be in default memory"
    )


# -- the module -----------------------------------------------------------------------------------


def times_of(context: PassContext) -> list[str]:
    return [remark.reason for remark in context.remarks if remark.kind == "analysis"]


def test_without_a_cost_model_no_times_are_told() -> None:
    assert times_of(assign(chain(6))[1]) == []


def test_times_before_and_after_with_what_was_in_the_way() -> None:
    _, context = assign(chain(6), max_size_in_bytes=16, cost_model=RATES)
    assert times_of(context) == [
        # Six negations and an addition move 15 times 32 bytes at 1 MB/s.
        "480.000 us by the cost model, 0.000 us of it waits for copies; 480.000 us with all in "
        "default memory; what stays outside could gain at most 230.400 us by 8 values (it is "
        "larger than alternate memory)"
    ]


def test_waits_for_copies_are_told() -> None:
    picker = {"kind": "instruction-count", "min_overlap": 1, "max_overlap": 4}
    options = {"cost_model": RATES, "prefetch_interval_picker": picker}
    (text,) = times_of(assign(chain(2), **options)[1])
    found = re.match(r"(\S+) us by the cost model, (\S+) us of it waits for copies;", text)
    assert found is not None
    seconds, waits = map(float, found.groups())
    assert 0 < waits < seconds


def test_the_greatest_three_reasons_are_told_and_the_sum_of_the_others() -> None:
    reads = "\n".join(
        f"%p{n} = f32[{1000 * n}] parameter({n - 1})\n%n{n} = f32[{1000 * n}] negate(%p{n})"
        for n in range(1, 7)
    )
    results = ", ".join(f"%n{n}" for n in range(1, 7))
    shapes = ", ".join(f"f32[{1000 * n}]" for n in range(1, 7))
    body = f"{reads}\nROOT %r = ({shapes}) tuple({results})"
    text = f"HloModule m, is_scheduled=true\n\nENTRY %e {{\n{body}\n}}\n"
    made = create_pass("memory-space-assignment", {"cost_model": RATES, "max_size_in_bytes": 8})
    plan = plan_memory_spaces(parse_module(text), made.options)
    by_name = {plan.program.flow.definer[b.values[0]].name: b for b in plan.unfit}
    reasons = {
        "p1": Reason.NO_ROOM,
        "p2": Reason.FIFO,
        "p3": Reason.NO_ROOM | Reason.TOO_SHORT,
        "p4": Reason.OUTSTANDING,
        "p5": Reason.NO_ROOM,
        "p6": Reason.NONE,
    }
    plan.unfit = {}
    plan.outside = {by_name[name]: reason for name, reason in reasons.items()}
    # Alternate memory saves 9 of 10 parts of what reading at 1 MB/s takes.
    assert lost_by_reason(plan) == [
        "21.600 ms by 2 values (there is no room then)",
        "14.400 ms by 1 value (too many copies are outstanding then)",
        "10.800 ms by 1 value (there is no room then; there is no time to prefetch it before "
        "a use)",
        "7.200 ms by 1 value (other reasons)",
    ]
