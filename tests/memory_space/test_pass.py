"""The pass as its users see it: remarks, refusals, statistics, and what becomes of a module."""

from __future__ import annotations

from typing import Any

import pytest
from tests.memory_space.chains import assign, chain

from hloopt.diagnostics import HloError, PassRefused
from hloopt.ir import Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.memory_space.memory_space_assignment import MemorySpaceAssignment
from hloopt.text import parse_module, print_module

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
