"""The search for overlap: results that fit and are not longer, by options and on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.passes.checked_run import reasons_to_stay, run_checked, run_equal

from hloopt.diagnostics import PipelineError
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.applications import Applications
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.overlap.decisions import Draft
from hloopt.passes.overlap.outcomes import for_compiler
from hloopt.passes.overlap.proposals import ALGORITHMS
from hloopt.text import parse_module, print_module

SEARCH: dict[str, Any] = {"target": "h100_sxm", "iterations": 10}
NO_COLLECTIVES = "HloModule m\n\nENTRY e { p = f32[8] parameter(0) ROOT n = f32[8] negate(p) }\n"


@pytest.fixture(scope="module")
def layers(root: Path) -> str:
    """A loop of 8 trips, each of two products with weights that are gathered for them."""
    return (root / "tests/golden/passes/overlap-search/example.hlo").read_text(encoding="utf-8")


def scheduled(text: str) -> str:
    """The module with the schedule that XLA:GPU would give it."""
    module = parse_module(text)
    every = {"convert_all_gather": True}
    for name, options in (
        ("async-collective-creator", every),
        ("hlo-memory-scheduler", {"preset": "xla-gpu"}),
        ("latency-hiding-scheduler", {"preset": "xla-gpu", "target": "h100_sxm"}),
    ):
        create_pass(name, options).run(module, PassContext(name))
    return print_module(module)


def decided(text: str, **options: object) -> PassContext:
    """The search on a module: what it counts and remarks."""
    context = PassContext("overlap-search")
    create_pass("overlap-search", {**SEARCH, **options}).run(parse_module(text), context)
    return context


def count(module: Module, opcode: Opcode) -> int:
    return sum(1 for _ in module.instructions(opcode))


def test_a_module_without_a_schedule_stays_one_that_xla_can_go_on_from(layers: str) -> None:
    module = run_equal("overlap-search", layers, **SEARCH)
    assert not module.is_scheduled
    assert count(module, Opcode.ALL_GATHER)
    assert not count(module, Opcode.ALL_GATHER_START)


def test_what_two_conditionals_call_is_two_computations_for_xla() -> None:
    """As after a loop is peeled: XLA's copy insertion refuses a computation with two callers."""
    module = parse_module(
        "HloModule m\n\nt { ROOT a = f32[8] parameter(0) }\n\n"
        "f { b = f32[8] parameter(0) ROOT n = f32[8] negate(b) }\n\n"
        "ENTRY e { c = pred[] parameter(0) p = f32[8] parameter(1)\n"
        "x = f32[8] conditional(c, p, p), true_computation=t, false_computation=f\n"
        "ROOT y = f32[8] conditional(c, x, x), true_computation=t, false_computation=f }\n"
    )
    called = [each.name for c in for_compiler(Draft(module)).instructions() for each in c.called]
    assert len(set(called)) == len(called) == 4


def test_a_module_with_a_schedule_gets_one(layers: str) -> None:
    module = run_equal("overlap-search", scheduled(layers), **SEARCH)
    assert module.is_scheduled
    assert count(module, Opcode.ALL_GATHER_START)


def test_an_order_is_searched_where_nothing_else_may_be_decided(layers: str) -> None:
    early = scheduled(layers)
    context = decided(early, decisions=["order"])
    assert context.statistics["decisions tried"] >= len(ALGORITHMS)
    told = [remark.reason for remark in context.remarks]
    beginnings = ("no decisions", "a step", "search the order: ", "schedule as XLA:GPU: ", "begin ")
    assert all(reason.startswith(beginnings) for reason in told)
    module = parse_module(layers)
    assert not create_pass("overlap-search", {**SEARCH, "decisions": ["order"]}).run(
        module, PassContext()
    ), "the order of a module without a schedule would be lost"


def test_iterations_and_a_seed_repeat_a_result(layers: str) -> None:
    options: dict[str, Any] = {**SEARCH, "iterations": 25, "seed": 3}
    first, second = (run_checked("overlap-search", layers, **options) for _ in range(2))
    assert print_module(first) == print_module(second)


def test_what_does_not_fit_is_not_done(layers: str) -> None:
    told = [remark.reason for remark in decided(layers).remarks]
    assert any(reason.startswith("pipeline") for reason in told)
    limit = {"memory_limit": 222 << 10, "iterations": 40}
    tight = [remark.reason for remark in decided(layers, **limit).remarks]
    assert not any(reason.startswith("pipeline") for reason in tight)
    assert any(reason.startswith("combine") for reason in tight)


def test_a_limit_does_not_keep_the_scheduler_from_what_fits(root: Path) -> None:
    text = (root / "testdata/fsdp_layers_8dev.after_spmd_partitioning.hlo").read_text("utf-8")
    limit = {"memory_limit": 256 << 20, "decisions": ["pipeline"]}
    (gain,) = (r.reason for r in decided(text, **limit).remarks if r.kind == "analysis")
    assert gain.startswith("pipeline %all_gather.3 backward: 5.646 ms to 4.321 ms, +")


@pytest.mark.parametrize(
    ("family", "beginning"),
    [("pipeline", "pipeline %"), ("combine", "combine all-gathers")],
)
def test_only_decisions_of_the_kinds_wanted_are_made(
    layers: str, family: str, beginning: str
) -> None:
    context = decided(layers, decisions=[family])
    made = [remark.reason for remark in context.remarks if remark.kind == "analysis"]
    assert made
    assert all(reason.startswith(beginning) for reason in made)
    assert context.statistics[f"decisions to {family}"] == len(made)


def test_gains_add_up_from_the_step_as_it_was_to_the_step_as_it_is(layers: str) -> None:
    context = decided(layers)
    (applied,) = (remark.reason for remark in context.remarks if remark.kind == "applied")
    gains = [remark.reason for remark in context.remarks if remark.kind == "analysis"]
    befores = [reason.rpartition(": ")[2].partition(" to ")[0] for reason in gains]
    afters = [reason.rpartition(" to ")[2].partition(",")[0] for reason in gains]
    assert befores[1:] == afters[:-1]
    assert gains[0] == "pipeline %up, %down backward: 0.2033 ms to 0.2029 ms, +33,540 bytes"
    assert applied.startswith(f"a step takes {afters[-1]} instead of {befores[0]}, ")


def test_modules_that_stay(layers: str) -> None:
    assert reasons_to_stay("overlap-search", NO_COLLECTIVES, **SEARCH) == [
        "the module has no collectives or transfers to the host"
    ]
    (reason,) = reasons_to_stay("overlap-search", layers, **SEARCH, decisions=["split"])
    assert reason.startswith("no decisions were found that make a step shorter than 0.2033 ms")


def test_a_limit_of_applications_is_kept(layers: str) -> None:
    context = PassContext("overlap-search", applications=Applications(0))
    module = parse_module(layers)
    assert not create_pass("overlap-search", SEARCH).run(module, context)
    assert print_module(module) == print_module(parse_module(layers))


def test_a_loop_of_unknown_trips_is_said_to_be_taken_once(layers: str) -> None:
    more = "one = s32[] constant(1)\n  trips = s32[] add(trip, one)"
    endless = layers.replace("trips = s32[] constant(8)", more)
    assert decided(endless).notes == ["the trip count of 1 loop is not known: taken as one"]


def test_errors(layers: str) -> None:
    with pytest.raises(PipelineError, match="needs a target") as raised:
        create_pass("overlap-search", {}).run(parse_module(layers), PassContext())
    assert str(raised.value) == "overlap-search needs a target, whose times it goes by"
    with pytest.raises(PipelineError, match="no target"):
        decided(layers, target="h1000")
