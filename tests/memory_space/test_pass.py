"""The pass as its users see it: remarks, refusals, statistics, and what becomes of a module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from hloopt.diagnostics import HloError, PassRefused
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.memory_space.memory_space_assignment import MemorySpaceAssignment
from hloopt.text import parse_module, print_module

BY_COUNT = {"kind": "instruction-count", "min_overlap": 2, "max_overlap": 4}
RATES = {
    "flops_per_second": 1e9,
    "default_mem_bandwidth_bytes_per_second": 1e6,
    "alternate_mem_read_bandwidth_bytes_per_second": 1e7,
    "alternate_mem_write_bandwidth_bytes_per_second": 1e7,
}


def chain(length: int, *, at_end: str = "add(%n{last}, %p1)", shape: str = "f32[8]") -> str:
    """A scheduled chain of negations of %p0; `at_end` is the root."""
    lines = [f"%n0 = {shape} negate(%p0)"]
    lines += [f"%n{n} = {shape} negate(%n{n - 1})" for n in range(1, length)]
    root = at_end.format(last=length - 1)
    body = "\n  ".join(lines)
    return (
        f"HloModule m, is_scheduled=true\n\nENTRY %e {{\n  %p0 = {shape} parameter(0)\n"
        f"  %p1 = {shape} parameter(1)\n  {body}\n  ROOT %r = {shape} {root}\n}}\n"
    )


def assign(text: str, **options: Any) -> tuple[Module, PassContext]:
    given: Mapping[str, Any] = {
        "max_size_in_bytes": 128,
        "alignment_in_bytes": 8,
        "prefetch_interval_picker": BY_COUNT,
        "enable_cross_program_prefetch": False,
        **options,
    }
    module, context = parse_module(text), PassContext()
    create_pass("memory-space-assignment", given).run(module, context)
    return module, context


def remarks(context: PassContext) -> dict[str, str]:
    return {r.instruction: r.reason for r in context.remarks if r.kind == "missed"}


# -- what becomes of a module -------------------------------------------------------------------


def test_values_stay_and_parameters_are_prefetched() -> None:
    module, context = assign(chain(6))
    assert module["n3"].shape.layout.memory_space == 1
    (done,) = module.instructions(Opcode.COPY_DONE)
    assert done.shape.layout.memory_space == 1
    assert done.operands[0].operands[0] is module["p1"]
    assert module["r"].operands[1] is done
    assert context.statistics == {"prefetches": 1, "evictions": 0}
    assert [r.reason for r in context.remarks if r.kind == "applied"] == [
        "7 positions in memory space 1"
    ]


def test_the_same_module_is_assigned_the_same_way() -> None:
    texts = {print_module(assign(chain(9))[0]) for _ in range(3)}
    assert len(texts) == 1


def test_without_room_nothing_changes() -> None:
    module, context = assign(chain(6), max_size_in_bytes=16)
    assert str(module) == str(parse_module(chain(6)))
    assert not [r for r in context.remarks if r.kind == "applied"]


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


def test_headings_of_the_page() -> None:
    assert list(MemorySpaceAssignment.option_groups) == [
        "The memories",
        "The order of buffers",
        "Prefetches and evictions",
        "Parameters loaded before the program runs",
        "Operations made asynchronous",
        "Values and uses",
        "Scoped memory",
        "Windows, blocks and loops",
        "Checks",
    ]


# -- refusals -------------------------------------------------------------------------------------


def test_a_schedule_is_needed() -> None:
    text = chain(3).replace(", is_scheduled=true", "")
    with pytest.raises(PassRefused, match="memory space assignment needs a schedule") as refused:
        assign(text)
    assert refused.value.help == "run hlo-memory-scheduler before it"


PLACED = (
    chain(2)
    .replace("%p0 = f32[8]", "%p0 = f32[8]{0:S(1)}")
    .replace("%p1 = f32[8]", "%p1 = f32[8]{0:S(1)}")
)


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            chain(3),
            {"prefetch_interval_picker": {"kind": "cost-analysis"}},
            "the prefetch interval picker cost-analysis needs a cost model",
        ),
        (
            chain(3),
            {"sort": {"kind": "memory-boundedness"}},
            "the order memory-boundedness needs a cost model",
        ),
        (
            chain(3),
            {
                "max_size_in_bytes": 32,
                "buffer_colorings": [{"use": "r", "operand": number} for number in (0, 1)],
            },
            "'%p1' requires allocation in the alternate memory, which could not be satisfied",
        ),
        (
            PLACED,
            {"enable_cross_program_prefetch": True},
            "2 parameters laid out in alternate memory, but at most 1 may be prefetched across "
            "programs",
        ),
        (
            chain(9),
            {
                "sliced_prefetch_options": {"max_slices": 2},
                "slice_proposals": {"f32[8]": [{"shape": "f32[4]", "slice": [[0, 4]]}]},
            },
            "the slices proposed for f32[8] do not make it up",
        ),
        (
            chain(3),
            {
                "max_outstanding_block_prefetches": 1,
                "custom_call_prefetches": [["p1", "n0", "n1"]],
            },
            "custom_call_prefetches: '%n0' does not read '%p1'",
        ),
        (
            chain(3),
            {"buffer_colorings": [{"position": "m1"}]},
            "buffer_colorings names '%m1', which is not in the schedule",
        ),
        (
            chain(3),
            {"autotuning_config": (0, 1)},
            "autotuning_config is no permutation of 6 buffers",
        ),
        (
            chain(3),
            {"preferred_prefetch_overrides": "x {"},
            "preferred_prefetch_overrides:1: expected a field, not the end",
        ),
    ],
    ids=[
        "picker",
        "order",
        "colors",
        "parameters",
        "slices",
        "custom calls",
        "name",
        "tuning",
        "text",
    ],
)
def test_options_that_cannot_be_met(text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PassRefused) as refused:
        assign(text, **options)
    assert message in refused.value.message
    assert refused.value.help


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sort": {"kinds": "size"}}, "option 'sort' has no option 'kinds'"),
        ({"buffer_colorings": [{"positon": "n0"}]}, "an entry has no option 'positon'"),
        ({"cost_model": {"flops_per_second": "fast"}}, 'takes a number, not "fast"'),
    ],
    ids=["nested", "in a list", "of a model"],
)
def test_words_that_options_do_not_have(options: dict[str, Any], message: str) -> None:
    with pytest.raises(HloError) as refused:
        assign(chain(3), **options)
    assert message in refused.value.message


# -- parameters and constants in front ------------------------------------------------------------

LATE = """HloModule m, is_scheduled=true

ENTRY %e {
  %p0 = f32[] parameter(0)
  %a = f32[] negate(%p0)
  %p1 = f32[] parameter(1)
  %c = f32[] constant(2)
  %b = f32[] multiply(%a, %c)
  ROOT %r = f32[] add(%b, %p1)
}
"""


def hoisted(text: str) -> tuple[list[str], PassContext]:
    module, context = parse_module(text), PassContext()
    create_pass("instruction-hoister", {}).run(module, context)
    return [i.name for i in module.entry.instructions], context


def test_parameters_and_constants_move_to_the_front() -> None:
    order, context = hoisted(LATE)
    assert order == ["c", "p0", "p1", "a", "b", "r"]
    assert [r.reason for r in context.remarks] == [
        "parameter moved to the front",
        "constant moved to the front",
    ]


@pytest.mark.parametrize(
    ("old", "new", "order"),
    [
        (", is_scheduled=true", "", ["p0", "a", "p1", "c", "b", "r"]),
        ("constant(2)", "constant(2), control-predecessors={a}", ["p0", "p1", "a", "c", "b", "r"]),
    ],
    ids=["no schedule", "a control dependency"],
)
def test_what_keeps_them_where_they_are(old: str, new: str, order: list[str]) -> None:
    assert hoisted(LATE.replace(old, new))[0] == order


def test_nothing_moves_where_all_stand_in_front() -> None:
    order, _ = hoisted(LATE)
    text = LATE.replace("  %a = f32[] negate(%p0)\n", "", 1).replace(
        "  %b =", "  %a = f32[] negate(%p0)\n  %b ="
    )
    assert hoisted(text)[0] == ["p0", "p1", "c", "a", "b", "r"]
    assert order != hoisted(text)[0]
