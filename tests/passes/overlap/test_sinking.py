"""Slices transposed in loops in place of arrays, as a decision of the search for memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked

from hloopt.ir import Opcode
from hloopt.memory.analysis import analyze_memory
from hloopt.memory.backends import GPU
from hloopt.memory.floor import memory_floor
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.overlap.decisions import Draft
from hloopt.passes.overlap.memory_search import least_memory
from hloopt.text import parse_module, print_module

LIMIT = 26 << 20
SEARCH: dict[str, Any] = {"target": "h100_sxm", "iterations": 20, "memory_limit": LIMIT}


@pytest.fixture(scope="module")
def step(root: Path) -> str:
    """A loop takes slices of 4 MiB of 16 MiB, which are transposed before it."""
    path = root / "tests" / "golden" / "passes" / "while-loop-transpose-sinking" / "example.hlo"
    text = (
        path.read_text(encoding="utf-8")
        .replace("8,6", "1024,1024")
        .replace("[8,4,6", "[1024,4,1024")
    )
    module = parse_module(text.replace("f32[8]", "f32[1024]").replace("f32[6]", "f32[1024]"))
    create_pass("hlo-memory-scheduler", {"preset": "xla-gpu"}).run(module, PassContext())
    return print_module(module)


def test_slices_are_transposed_where_that_makes_a_program_fit(step: str) -> None:
    module = run_checked("memory-search", step, **SEARCH)
    assert analyze_memory(module, backend=GPU).statistics.total_allocation_bytes <= LIMIT
    assert not [i for i in module.entry.instructions if i.opcode is Opcode.TRANSPOSE]
    context = PassContext("memory-search")
    create_pass("memory-search", SEARCH).run(parse_module(step), context)
    (gain,) = (
        r.reason for r in context.remarks if r.kind == "analysis" and "transpose" in r.reason
    )
    assert gain.startswith("transpose slices in loops in place of whole arrays: ")
    kinds = ["rematerialize", "minimize", "order", "offload"]
    (reason,) = reasons_to_stay("memory-search", step, **SEARCH, decisions=kinds)
    assert reason.startswith("no decisions were found by which it fits")


def test_the_least_memory_is_that_without_arrays_transposed_before_loops(step: str) -> None:
    module = parse_module(step)
    create_pass("hlo-descheduler", {}).run(module, PassContext())
    assert least_memory(Draft(module)).size < LIMIT < memory_floor(module, backend=GPU).size
