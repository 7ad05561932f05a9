"""The search for an assignment: never worse, the same each time, within the options."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tests.memory_space.chains import RATES, chain

from hloopt.diagnostics import PassRefused, PipelineError
from hloopt.ir import Module, Opcode
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.memory_space.memory_space_assignment import MemorySpaceAssignment
from hloopt.passes.memory_space.search.search import Outcome, search_assignment
from hloopt.passes.memory_space.times import run_times
from hloopt.search_budget import SearchLimits
from hloopt.text import parse_module, print_module
from memory_space_lib.examine import assign, differences
from memory_space_lib.programs import random_case

NAME = "memory-space-assignment"
BY_COST: dict[str, Any] = {
    "max_size_in_bytes": 256,
    "alignment_in_bytes": 8,
    "prefetch_interval_picker": {"kind": "cost-analysis"},
    "sort": {"kind": "memory-boundedness"},
    "cost_model": RATES,
}


def options_of(given: dict[str, Any]) -> MemorySpaceOptions:
    made = create_pass(NAME, given)
    assert isinstance(made, MemorySpaceAssignment)
    return made.options


def searched(text: str, iterations: int = 12, seed: int = 0, **given: Any) -> Outcome:
    search = {"iterations": iterations, "seed": seed}
    options = options_of({**BY_COST, "search": search, **given})
    return search_assignment(parse_module(text), options)


def optimized(text: str, **given: Any) -> tuple[Module, PassContext, bool]:
    module, context = parse_module(text), PassContext()
    changed = create_pass(NAME, {**BY_COST, **given}).run(module, context)
    return module, context, changed


@pytest.mark.parametrize("number", range(8))
def test_a_search_is_never_worse(number: int) -> None:
    text, _ = random_case(0, number)
    found = searched(text)
    assert found.least <= found.seconds <= min(found.heuristic, found.plain)
    assert found.tried == 12
    module, _, _ = optimized(text, search={"iterations": 12})
    assert run_times(module, options_of(BY_COST)).seconds == pytest.approx(found.seconds, rel=1e-9)


def test_searches_find_something() -> None:
    outcomes = [searched(random_case(0, number)[0], iterations=16) for number in range(10)]
    better = [found for found in outcomes if found.seconds < 0.995 * found.heuristic]
    assert len(better) >= 3


def test_iterations_give_the_same_result_each_time() -> None:
    text, _ = random_case(0, 5)
    first, second = (optimized(text, search={"iterations": 20})[0] for _ in range(2))
    assert print_module(first) == print_module(second)


@pytest.mark.parametrize(
    "number", [*range(4), *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 12))]
)
def test_results_keep_the_laws(number: int) -> None:
    text, _ = random_case(1, number)
    options = {**BY_COST, "search": {"iterations": 14, "seed": number}}
    result = assign(text, options)
    faults = [*result.faults, *differences(text, options, result, seeds=1)]
    assert list(map(str, faults)) == []


def test_no_iterations_leave_the_rules_alone() -> None:
    text = chain(8)
    assert print_module(optimized(text, search={"iterations": 0})[0]) == print_module(
        optimized(text)[0]
    )


def test_nothing_is_done_where_all_in_default_memory_is_as_good() -> None:
    slow = {
        **RATES,
        "alternate_mem_read_bandwidth_bytes_per_second": 1e4,
        "alternate_mem_write_bandwidth_bytes_per_second": 1e4,
    }
    text = chain(8)
    assert optimized(text, cost_model=slow)[2]
    module, _, changed = optimized(text, cost_model=slow, search={"iterations": 3})
    assert not changed
    assert print_module(module) == print_module(parse_module(text))


def test_limits_of_the_options_hold() -> None:
    for number in range(6):
        text, _ = random_case(2, number)
        module, _, _ = optimized(text, max_outstanding_prefetches=0, search={"iterations": 14})
        copies = module.instructions(Opcode.COPY_START)
        assert not any(c.shape.elements[0].layout.memory_space == 1 for c in copies)


def test_the_remark_has_all_times() -> None:
    _, context, _ = optimized(chain(8), search={"iterations": 2})
    (reason, _) = [r.reason for r in context.remarks if r.kind == "analysis"]
    assert re.fullmatch(
        r"[\d.,]+ us by the cost model, [\d.,]+ us by the rules alone, [\d.,]+ us with all in "
        r"default memory, [\d.,]+ us at the very least; 2 assignments tried",
        reason,
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"cost_model": None, "sort": {"kind": "size"}},
            "the search for places needs a cost model",
        ),
        (
            {"autotuning_config": [0]},
            "autotuning_config gives the order of buffers, which the search looks for",
        ),
    ],
)
def test_what_a_search_cannot_do_is_refused(given: dict[str, Any], message: str) -> None:
    picker = {"kind": "instruction-count"}
    with pytest.raises(PassRefused, match=message):
        optimized(chain(4), **given, prefetch_interval_picker=picker, search={"iterations": 1})


@pytest.mark.parametrize("given", [{"budget": float("inf")}, {"iterations": -1}])
def test_a_search_has_an_end(given: dict[str, Any]) -> None:
    with pytest.raises(PipelineError, match=r"the search's [a-z]+ is .*: it has to be 0 or more"):
        SearchLimits(**given)


def test_progress_is_told() -> None:
    told: list[str] = []
    options = options_of({**BY_COST, "search": {"iterations": 2}})
    search_assignment(parse_module(chain(4)), options, lambda what, _: told.append(what))
    assert told == ["searching for places"] * 2
