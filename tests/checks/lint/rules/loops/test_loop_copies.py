"""Copies of the state of loops."""

from __future__ import annotations

import pytest
from tests.checks.lint.linting import check, found_names, violations
from tests.checks.lint.loops import UNKNOWN_LIMIT, in_loop, in_two_loops

from hloopt.analysis.cost import CostAnalysis
from hloopt.checks.results import Verdict
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

CODE = "HLL505"
LARGE, OTHER = "f32[1024,1024]{1,0}", "f32[1024,1024]{0,1}"
HOST = "f32[1024,1024]{1,0:S(5)}"
MOVED = 10 * 2 * 4 * 1024 * 1024
FUSED = f"""
negated {{ g0 = {LARGE} parameter(0) ROOT g1 = {LARGE} negate(g0) }}
added {{
  h0 = {LARGE} parameter(0)
  h1 = {LARGE} parameter(1)
  ROOT h2 = {LARGE} add(h0, h1)
}}
"""
SWAPPED = f"x = {LARGE} copy(v1) y = {LARGE} copy(v2)"
"""Copies without which two elements cannot change places."""
NEEDLESS = f"x = {LARGE} copy(v1) y = {LARGE} fusion(x), kind=kLoop, calls=negated"


def copying(work: str, results: str, shape: str = LARGE, **given: str) -> str:
    return in_loop(work, results, shape, shape, computations=FUSED, **given)


def test_copies_that_are_needed_have_a_reason() -> None:
    (found,) = violations(CODE, copying(SWAPPED, "y, x"))
    assert found.location.instruction == "w"
    assert [each.instruction for each in found.related] == ["x", "y"]
    assert found.message.startswith(
        "%w copies 8.0 MiB of its state in each of its 10 trips, 100.0% of the bytes of the "
        "module: %x stays, for both what it reads and what it writes lie between other values ("
    )
    assert found.impact.moved == 2 * MOVED
    assert found.help == ""


def test_copies_that_are_not_needed_are_those_that_the_pass_removes() -> None:
    text = copying(NEEDLESS, "y, v2")
    (found,) = violations(CODE, text)
    assert ": 1 of 1 copy is not needed (" in found.message
    assert found.help == "Run `hloopt opt --passes remove-unnecessary-copies,dce`."
    module = parse_module(text)
    before = CostAnalysis(module).module().bytes_accessed
    for name in ("remove-unnecessary-copies", "dce"):
        create_pass(name).run(module, PassContext())
    assert found.impact.moved == before - CostAnalysis(module).module().bytes_accessed == MOVED


def test_of_several_copies_some_may_go() -> None:
    shapes = (LARGE,) * 3
    work = f"{SWAPPED} k = {LARGE} copy(v3) z = {LARGE} fusion(k), kind=kLoop, calls=negated"
    (found,) = violations(CODE, in_loop(work, "y, x, z", *shapes, computations=FUSED))
    assert ": 1 of 3 copies is not needed (" in found.message
    assert found.impact.moved == MOVED  # of that one


@pytest.mark.parametrize(
    ("work", "results"),
    [
        (f"k = {LARGE} fusion(v1), kind=kLoop, calls=negated x = {LARGE} copy(k)", "x, v2"),
        (f"b = {LARGE} bitcast(v1) x = {LARGE} copy(b) "
         f"y = {LARGE} fusion(x), kind=kLoop, calls=negated", "y, v2"),
    ],
    ids=["left to the next trip", "through a bitcast"],
)  # fmt: skip
def test_copies_at_either_end_of_a_trip_are_found(work: str, results: str) -> None:
    (found,) = violations(CODE, copying(work, results))
    assert [each.instruction for each in found.related] == ["x"]
    assert found.impact.moved == MOVED


@pytest.mark.parametrize(
    ("work", "results", "shape"),
    [
        (f"k = {LARGE} negate(v1) x = {LARGE} copy(k) "
         f"y = {LARGE} fusion(x), kind=kLoop, calls=negated", "y, v2", LARGE),
        (f'k = ({LARGE}, {LARGE}) custom-call(v1), custom_call_target="f" '
         f"l = {LARGE} get-tuple-element(k), index=0 x = {LARGE} copy(l) "
         f"y = {LARGE} fusion(x), kind=kLoop, calls=negated", "y, v2", LARGE),
        (f"k = {OTHER} copy(v1) y = {LARGE} copy(k)", "v1, v2", LARGE),
        (f"k = {HOST} copy(v1)", "v1, v2", LARGE),
        (f"y = {LARGE} fusion(v1), kind=kLoop, calls=negated", "y, v2", LARGE),
    ],
    ids=["within a trip", "of another tuple", "layout", "memory", "none"],
)  # fmt: skip
def test_other_copies_are_not_of_the_state(work: str, results: str, shape: str) -> None:
    assert found_names(CODE, copying(work, results, shape)) == []


def test_small_arrays_do_not_count() -> None:
    text = copying(SWAPPED, "y, x")
    assert found_names(CODE, text, size=4 << 20) == ["w"]
    assert found_names(CODE, text, size=(4 << 20) + 1) == []
    assert found_names(CODE, text, share=0.99) == ["w"]
    assert found_names(CODE, text, share=1.0) == []


@pytest.mark.parametrize("limit", ["constant(1)", "constant(0)"])
def test_a_loop_of_one_trip_is_not_looked_at(limit: str) -> None:
    assert found_names(CODE, copying(SWAPPED, "y, x", limit="constant(2)")) == ["w"]
    assert found_names(CODE, copying(SWAPPED, "y, x", limit=limit)) == []


def test_a_loop_that_runs_several_times_counts_as_often() -> None:
    inner = copying(SWAPPED, "y, x")
    (found,) = violations(CODE, in_two_loops(inner, LARGE, LARGE))
    assert "in each of its 10 trips, " in found.message
    assert found.impact.moved == 20 * MOVED
    never = in_two_loops(inner, LARGE, LARGE, limit="constant(0)")
    assert found_names(CODE, never, share=0.0) == []


def test_trips_that_are_not_known_allow_no_verdict() -> None:
    work = SWAPPED.replace("v2", "v3").replace("v1", "v2")
    text = in_loop(work, "v1, y, x", "s32[]", LARGE, LARGE, limit=UNKNOWN_LIMIT)
    found = check(CODE, text)
    assert found.verdict is Verdict.NONE
    assert found.reason == "the number of trips is not known of %w"


def test_copies_have_to_be_inserted() -> None:
    found = check(CODE, copying(SWAPPED, "y, x", header="replica_count=1"))
    assert found.verdict is Verdict.NONE
    assert found.reason == "copies may not be inserted yet: %w may need copies"


def test_a_module_that_the_pass_refuses_has_no_reason() -> None:
    """It is not flat: two loops share a body."""
    text = copying(SWAPPED, "y, x").replace("ROOT w =", "first =")
    state = f"(s32[], {LARGE}, {LARGE})"
    text = text.rstrip().removesuffix("}")
    text += f"  ROOT w = {state} while(state), condition=condition, body=body\n}}\n"
    first, second = violations(CODE, text)
    assert first.message.endswith("of the bytes of the module (320.0 MiB moved)")
    assert first.impact == second.impact
