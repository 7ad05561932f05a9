"""Passes of which no outputs were recorded, beside XLA:GPU's compiler, on small programs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from tests.oracle.comparison import differences, without_leftovers
from tests.oracle.everyday.bodies import conversions, shards, slices, sorts

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

pytestmark = [pytest.mark.slow, pytest.mark.oracle]


class Case(NamedTuple):
    """A pass with programs for it."""

    name: str
    programs: Callable[[], Iterator[str]]
    pipeline: str = ""
    """The pipeline around it that has to run with it, if it does not run alone."""
    partitions: int = 1
    different: int = 0
    """Of how many programs ours makes something else."""
    reason: str = ""


CASES = [
    Case("convert-mover", conversions, "simplification-2"),
    Case(
        "slice-sinker", slices, "simplification", 1, 1,
        "XLA counts the elements of multiply(slice(a), slice(a)) twice: once for each slice",
    ),
    Case("stable-sort-expander", sorts),
    Case(
        "all-gather-dynamic-slice-simplifier", shards, "", 4, 2,
        "XLA leaves all-gathers alone that name no groups",
    ),
]  # fmt: skip


def texts(case: Case) -> list[str]:
    return [
        body
        if body.startswith("HloModule")
        else f"HloModule m, num_partitions={case.partitions}\n\nENTRY e {{{body}\n}}\n"
        for body in case.programs()
    ]


def answers(compiler: Any, case: Case) -> list[tuple[str, str]]:
    """Each program before XLA's pass, where that first runs, and after it."""
    results = compiler.compile_many(
        texts(case), target="h100_sxm", only=[case.pipeline or case.name],
        passes=f"^{case.name}$", until="memory", lhs=False,
    )  # fmt: skip
    steps = [result.steps[0] for result in results]
    return [(step.before, step.after or step.before) for step in steps]


def result(name: str, text: str) -> Module:
    module = parse_module(text)
    create_pass(name).run(module, PassContext())
    return module


def without_collectives(module: Module) -> None:
    """Remove all-gathers that nothing reads: XLA knows that the module was partitioned, of which
    its text says nothing, so that they have no effect."""
    for gathered in [*module.instructions(Opcode.ALL_GATHER)]:
        if not gathered.users and not gathered.is_root:
            gathered.parent.remove(gathered)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_result_is_that_of_xla(case: Case, compiler: Any) -> None:
    asked = answers(compiler, case)
    assert len(asked) >= 20
    assert sum(before != after for before, after in asked) >= 4
    different = 0
    for before, after in asked:
        ours, theirs = result(case.name, before), parse_module(after)
        for module in (ours, theirs):
            without_leftovers(module)
            without_collectives(module)
        if differences(ours, theirs):
            different += 1
            assert Reference(parse_module(before), RunSettings()).compare(ours, "bits") is None
    assert different == case.different, case.reason
