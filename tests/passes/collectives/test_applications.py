"""Counts of what the passes on collectives make, their limits, and schedules they change.

The modules are those of the golden tests in which each pass finds something to do.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.passes.checked_run import run_checked

from hloopt.ir import Instruction
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

COUNTS = {
    "all-gather-bcast-reorder": {"all-gathers moved": 2},
    "all-gather-combiner": {"all-gathers combined": 3, "combined all-gathers made": 1},
    "all-gather-cse": {"all-gathers replaced": 1},
    "all-reduce-contiguous": {"operands concatenated": 3},
    "all-reduce-folder": {"all-reduces folded": 1},
    "all-reduce-reassociate": {"operations moved before collectives": 3},
    "all-reduce-simplifier": {"collectives removed": 3},
    "all-reduce-splitter": {"all-reduces split": 1},
    "collective-permute-decomposer": {"permutes split": 2},
    "collective-pipeliner": {"pipelined forward": 1, "marks removed": 0},
    "reduce-scatter-combiner": {"reduce-scatters combined": 2, "combined reduce-scatters made": 1},
    "reduce-scatter-creator": {"reduce-scatters made": 3},
    "reduce-scatter-reassociate": {"operations moved before collectives": 1},
    "while-loop-all-reduce-code-motion": {"collectives moved out of loops": 2},
}
ONE_BY_ONE = sorted(
    set(COUNTS)
    - {"all-gather-combiner", "reduce-scatter-combiner", "collective-permute-decomposer"}
)


def golden(root: Path, name: str) -> str:
    """The module of the golden test of a pass."""
    file = "forward.hlo" if name == "collective-pipeliner" else "fires.hlo"
    return (root / "tests/golden/passes" / name / file).read_text(encoding="utf-8")


def remarks(name: str, text: str, limit: int | None = None) -> tuple[PassContext, list[str]]:
    """The context of a run with that many applications at most, and its remarks."""
    module = parse_module(text)
    before = print_module(module)
    context = PassContext(name, applications=Applications(limit))
    changed = create_pass(name).run(module, context)
    assert changed is (print_module(module) != before)
    return context, [f"{r.kind} %{r.instruction}: {r.reason}" for r in context.remarks]


@pytest.mark.parametrize("name", COUNTS)
def test_what_a_pass_makes_is_counted(name: str, root: Path) -> None:
    context, _ = remarks(name, golden(root, name))
    assert context.statistics == COUNTS[name]


@pytest.mark.parametrize("name", ONE_BY_ONE)
def test_a_pass_leaves_off_at_the_limit_of_applications(name: str, root: Path) -> None:
    text = golden(root, name)
    _, everything = remarks(name, text)
    applied = [place for place, r in enumerate(everything) if r.startswith("applied")]
    for limit, place in enumerate(applied):
        context, found = remarks(name, text, limit)
        assert found == everything[:place]
        assert context.applications.made == limit


@pytest.mark.parametrize("name", ["all-gather-combiner", "reduce-scatter-combiner"])
def test_no_group_is_combined_at_the_limit_of_applications(name: str, root: Path) -> None:
    context, found = remarks(name, golden(root, name), 0)
    assert not context.statistics
    assert all(remark.startswith("missed") for remark in found)


@pytest.mark.parametrize("name", COUNTS)
def test_a_schedule_has_operands_before_users_afterwards(name: str, root: Path) -> None:
    text = golden(root, name)
    if "is_scheduled" not in text:
        text = re.sub(r"(?m)^(HloModule \w+)", r"\1, is_scheduled=true", text)
    module = run_checked(name, text)
    for computation in module.computations.values():
        done: set[Instruction] = set()
        for instruction in computation.instructions:
            assert done.issuperset(instruction.operands)
            assert done.issuperset(instruction.control_predecessors)
            done.add(instruction)
