"""The number of trips that loops make: unknown ones and wrong ones."""

from __future__ import annotations

import pytest
from tests.checks.expecting import UNPARTITIONED
from tests.checks.lint.linting import check, found_names, violations
from tests.checks.lint.loops import UNKNOWN_LIMIT, in_loop

from hloopt.checks.results import Severity, Verdict
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

SUM = "sum { g0 = f32[] parameter(0) g1 = f32[] parameter(1) ROOT g2 = f32[] add(g0, g1) }"
GROUPS = "replica_groups={{0,1}}, to_apply=sum"
REDUCED = f"x = f32[4] all-reduce(v2), {GROUPS}"
WRAPPED = f"wrapped {{ h0 = f32[4] parameter(0) ROOT h1 = f32[4] all-reduce(h0), {GROUPS} }}"
ASYNC = "((f32[4]), f32[4], u32[])"
NOT_CONSTANT = "the limit it compares its counter with is not constant"


def unknown(work: str, *, limit: str = UNKNOWN_LIMIT, config: str = "") -> str:
    return in_loop(
        *(work, "v1, x", "s32[]", "f32[4]"),
        computations=SUM + WRAPPED,
        header="replica_count=2",
        limit=limit,
        config=config,
    )


@pytest.mark.parametrize(
    ("work", "name"),
    [
        (REDUCED, "x"),
        (
            f"y = f32[4] all-reduce-start(v2), {GROUPS} x = f32[4] all-reduce-done(y)",
            "y",
        ),
        (f"y = {ASYNC} async-start(v2), calls=wrapped x = f32[4] async-done(y)", "h1"),
        ("x = f32[4] call(v2), to_apply=wrapped", "h1"),
    ],
)  # fmt: skip
def test_a_loop_with_collectives_needs_a_trip_count(work: str, name: str) -> None:
    (found,) = violations("HLL503", unknown(work))
    assert found.location.instruction == "w"
    assert found.message == (
        f"the trip count of %w is not known, and a trip has 1 collective: {NOT_CONSTANT}"
    )
    assert [each.instruction for each in found.related] == [name]


@pytest.mark.parametrize(
    "text",
    [
        unknown(REDUCED, limit="constant(10)"),
        unknown(REDUCED, config=', backend_config={"known_trip_count":{"n":"3"}}'),
        unknown("x = f32[4] negate(v2)"),
        unknown("x = f32[4] all-reduce(v2), replica_groups={{0},{1}}, to_apply=sum"),
    ],
    ids=["computed", "stated", "without collectives", "without wire"],
)
def test_a_loop_that_can_be_counted_or_sends_nothing_is_fine(text: str) -> None:
    assert found_names("HLL503", text) == []


def test_the_collectives_of_inner_loops_are_those_of_a_trip() -> None:
    inner = """inner_body { h2 = (s32[], f32[4]) parameter(0)
  h3 = s32[] get-tuple-element(h2), index=0
  h4 = f32[4] get-tuple-element(h2), index=1
  h5 = s32[] constant(1) h6 = s32[] add(h3, h5)
  h7 = f32[4] call(h4), to_apply=wrapped
  ROOT h8 = (s32[], f32[4]) tuple(h6, h7) }
inner_test { k0 = (s32[], f32[4]) parameter(0)
  k1 = s32[] get-tuple-element(k0), index=0
  k2 = s32[] constant(3) ROOT k3 = pred[] compare(k1, k2), direction=LT }
"""
    work = """zero.1 = s32[] constant(0) k = (s32[], f32[4]) tuple(zero.1, v2)
  inner = (s32[], f32[4]) while(k), condition=inner_test, body=inner_body
  x = f32[4] get-tuple-element(inner), index=1"""
    text = unknown(work).replace(WRAPPED, WRAPPED + inner)
    assert found_names("HLL503", text) == ["w"]
    assert found_names("HLL503", text.replace(UNKNOWN_LIMIT, "constant(2)")) == []


def test_a_loop_that_nothing_runs_is_not_looked_at() -> None:
    entry = "ENTRY main { m0 = f32[4] parameter(0) ROOT m1 = f32[4] negate(m0) }"
    for code, text in (("HLL503", unknown(REDUCED)), ("HLL507", stating(11))):
        assert found_names(code, text) == ["w"]
        assert found_names(code, text.replace("ENTRY e", "unused") + entry) == []


def test_collectives_of_a_module_that_is_not_partitioned_are_yet_to_come() -> None:
    assert check("HLL503", UNPARTITIONED).verdict is Verdict.NONE


def stating(trips: int) -> str:
    config = f', backend_config={{"known_trip_count":{{"n":"{trips}"}}}}'
    return in_loop("x = f32[4] negate(v1)", "x", "f32[4]", config=config)


def test_a_wrong_trip_count_is_an_error() -> None:
    (found,) = violations("HLL507", stating(1100))
    assert found.severity is Severity.ERROR
    assert found.location.instruction == "w"
    assert found.message == (
        "the known_trip_count of %w is 1,100, but its body and condition make 10 trips"
    )


@pytest.mark.parametrize(
    "text",
    [
        stating(10),
        in_loop("x = f32[4] negate(v1)", "x", "f32[4]"),
        unknown(REDUCED, config=', backend_config={"known_trip_count":{"n":"3"}}'),
    ],
    ids=["right", "not stated", "not computable"],
)
def test_what_does_not_contradict_the_loop_is_fine(text: str) -> None:
    assert found_names("HLL507", text) == []


def test_the_annotator_mends_it() -> None:
    text = stating(11)
    module = parse_module(text.partition(", backend_config")[0] + "\n}\n")
    assert create_pass("while-loop-trip-count-annotator").run(module, PassContext())
    mended = print_module(module)
    assert "known_trip_count" in mended
    assert found_names("HLL507", mended) == []
