"""Stacks of loops in host memory, as a decision of the search for memory."""

from __future__ import annotations

from typing import Any

import pytest
from tests.memory_space.residuals.programs import UNFUSED
from tests.passes.checked_run import run_checked

from hloopt.ir import Module
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE
from hloopt.memory.analysis import analyze_memory
from hloopt.memory.backends import GPU
from hloopt.memory.floor import memory_floor
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.overlap.judging import Judge
from hloopt.passes.overlap.memory_proposals import offloaded
from hloopt.passes.overlap.memory_search import least_memory
from hloopt.passes.overlap.options import MemorySearchOptions
from hloopt.passes.overlap.outcomes import given_program
from hloopt.text import parse_module, print_module

LONG = 1 << 20
"""The length of a row: the stack of four takes 16 MiB."""
LIMIT = 17 << 20


@pytest.fixture(scope="module")
def step() -> str:
    text = (
        UNFUSED.replace("[8]", f"[{LONG}]")
        .replace("1,8]", f"1,{LONG}]")
        .replace("4,8]", f"4,{LONG}]")
    )
    module = parse_module(text.replace("{1,8}", f"{{1,{LONG}}}"))
    create_pass("hlo-memory-scheduler", {"preset": "xla-gpu"}).run(module, PassContext())
    return print_module(module)


def allocated(module: Module) -> int:
    return analyze_memory(module, backend=GPU).statistics.total_allocation_bytes


def in_host_memory(module: Module) -> bool:
    return any(
        leaf.is_array and leaf.layout.memory_space == HOST_MEMORY_SPACE
        for instruction in module.instructions()
        for leaf in instruction.shape.leaves()
    )


def test_a_stack_moves_to_the_host_where_that_makes_a_program_fit(step: str) -> None:
    assert allocated(parse_module(step)) > LIMIT
    options: dict[str, Any] = {"target": "h100_sxm", "iterations": 20, "memory_limit": LIMIT}
    module = run_checked("memory-search", step, **options)
    assert allocated(module) <= LIMIT
    assert in_host_memory(module)
    kinds = ["rematerialize", "minimize", "order"]
    kept = create_pass("memory-search", {**options, "decisions": kinds})
    context = PassContext("memory-search")
    assert not kept.run(parse_module(step), context), "other decisions do not suffice"
    assert any("no decisions were found by which it fits" in r.reason for r in context.remarks)


def test_the_least_memory_is_that_without_stacks_that_may_be_in_host_memory(step: str) -> None:
    module = parse_module(step)
    judge = Judge(MemorySearchOptions(target="h100_sxm"))
    draft = given_program(module, judge).draft
    floor = least_memory(draft).size
    assert floor < LIMIT < memory_floor(module, backend=GPU).size
    moved = draft.after(offloaded(()))
    assert moved is not None
    assert floor <= judge.finish(moved).allocated
    context = PassContext("memory-search")
    options = {"target": "h100_sxm", "iterations": 20, "memory_limit": floor - 1}
    assert not create_pass("memory-search", options).run(module, context)
    (reason,) = (remark.reason for remark in context.remarks if remark.kind == "missed")
    assert f"need {floor:,} in any order, with any of them computed again, slices" in reason
    assert reason.endswith("which does not fit")
