"""Work that loops repeat in every trip."""

from __future__ import annotations

import pytest
from tests.checks.expecting import UNPARTITIONED
from tests.checks.lint.linting import check, found_names, violations
from tests.checks.lint.loops import UNKNOWN_LIMIT, in_loop, in_two_loops

from hloopt.analysis.cost import CostAnalysis
from hloopt.checks.results import Verdict
from hloopt.explanations import explain
from hloopt.text import parse_module

CODE = "HLL506"
SQUARE = "f32[512,512]"
FUSED = f"""
converted {{ g0 = {SQUARE} parameter(0) ROOT g1 = bf16[512,512] convert(g0) }}
added {{
  h0 = {SQUARE} parameter(0)
  h1 = bf16[512,512] parameter(1)
  h2 = {SQUARE} convert(h1)
  ROOT h3 = {SQUARE} add(h0, h2)
}}
spread {{ k0 = f32[] parameter(0) ROOT k1 = {SQUARE} broadcast(k0), dimensions={{}} }}
"""
CONVERTED = "x = bf16[512,512] fusion(v1), kind=kLoop, calls=converted"
USE = f"y = {SQUARE} fusion(v2, x), kind=kLoop, calls=added"
PRODUCT = (
    f"x = {SQUARE} dot(v1, v1), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} "
    f"z = {SQUARE} dot(v2, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} "
    f"y = {SQUARE} fusion(z), kind=kLoop, calls=negated"
)
NEGATED = f"negated {{ n0 = {SQUARE} parameter(0) ROOT n1 = {SQUARE} negate(n0) }}"
MOVED = 512 * 512 * 6


def repeating(work: str, results: str = "v1, y", **given: str) -> str:
    given.setdefault("computations", FUSED + NEGATED)
    return in_loop(work, results, SQUARE, SQUARE, **given)


def test_a_conversion_of_what_the_loop_hands_on_is_found() -> None:
    (found,) = violations(CODE, repeating(f"{CONVERTED} {USE}"))
    assert found.location.instruction == "x"
    assert found.message.startswith(
        "%x computes the same in each of the 10 trips of %w, which is 33.7% of the bytes of the "
        "module ("
    )
    assert (
        found.help
        == "Compute it before the loop, which keeps 512.0 KiB in memory while the loop runs."
    )
    assert [each.instruction for each in found.related] == ["w"]
    assert found.impact.moved == 9 * MOVED
    assert found.impact.seconds > 0
    (untimed,) = violations(CODE, repeating(f"{CONVERTED} {USE}"), target=None)
    assert untimed.impact.moved == 9 * MOVED
    assert untimed.impact.seconds == 0


def test_a_product_is_found_by_its_flops() -> None:
    (found,) = violations(CODE, repeating(PRODUCT))
    assert found.location.instruction == "x"
    assert "% of the flops of the module" in found.message


@pytest.mark.parametrize(
    "work",
    [
        f"x = bf16[512,512] fusion(v2), kind=kLoop, calls=converted {USE}",
        f"x = {SQUARE} copy(v1) z = {SQUARE} dot(v2, x), lhs_contracting_dims={{1}}, "
        f"rhs_contracting_dims={{0}} y = {SQUARE} fusion(z), kind=kLoop, calls=negated",
        f"k = f32[] constant(1) x = {SQUARE} fusion(k), kind=kLoop, calls=spread "
        f"z = {SQUARE} dot(v2, x), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} "
        f"y = {SQUARE} fusion(z), kind=kLoop, calls=negated",
    ],
    ids=["changes", "copy", "writes more than it reads"],
)
def test_what_changes_or_need_not_be_kept_is_not_found(work: str) -> None:
    assert found_names(CODE, repeating(work)) == []


def test_a_collective_is_for_another_rule() -> None:
    reduced = "sum { r0 = f32[] parameter(0) r1 = f32[] parameter(1) ROOT r2 = f32[] add(r0, r1) }"
    groups = "replica_groups={{0,1}}, to_apply=sum"
    work = (
        f"x = {SQUARE} all-reduce(v1), {groups} z = {SQUARE} dot(v2, x), "
        "lhs_contracting_dims={1}, rhs_contracting_dims={0} "
        f"y = {SQUARE} fusion(z), kind=kLoop, calls=negated"
    )
    text = repeating(
        work, computations=FUSED + NEGATED + reduced, header="is_scheduled=true, replica_count=2"
    )
    assert found_names(CODE, text) == []
    call = 'custom-call(v1), custom_call_target="f"'
    assert found_names(CODE, text.replace(f"all-reduce(v1), {groups}", call)) == ["x"]


@pytest.mark.parametrize("limit", ["constant(1)", "constant(0)"])
def test_a_loop_of_one_trip_repeats_nothing(limit: str) -> None:
    work = f"{CONVERTED} {USE}"
    assert found_names(CODE, repeating(work, limit="constant(2)")) == ["x"]
    assert found_names(CODE, repeating(work, limit=limit)) == []


def test_a_loop_of_unknown_trips_is_left_out() -> None:
    work = f"{CONVERTED} {USE}".replace("v2", "v3").replace("v1", "v2")
    text = in_loop(
        *(work, "v1, v2, y", "s32[]", SQUARE, SQUARE), computations=FUSED, limit=UNKNOWN_LIMIT
    )
    assert found_names(CODE, text) == []
    assert found_names(CODE, text.replace(UNKNOWN_LIMIT, "constant(3)")) == ["x"]


def test_of_loops_in_loops_each_run_computes_once() -> None:
    inner = repeating(f"{CONVERTED} {USE}")
    (found,) = violations(CODE, in_two_loops(inner, SQUARE, SQUARE))
    assert found.location.instruction == "x"
    assert "in each of the 10 trips of" in found.message
    assert found.impact.moved == 90 * MOVED


def test_the_share_is_an_option() -> None:
    text = repeating(f"{CONVERTED} {USE}")
    assert found_names(CODE, text, share=0.33) == ["x"]
    assert found_names(CODE, text, share=0.34) == []


def test_what_is_small_does_not_count() -> None:
    text = repeating(f"{CONVERTED} {USE}")
    assert found_names(CODE, text, size=9 * MOVED) == ["x"]
    assert found_names(CODE, text, size=9 * MOVED + 1) == []
    assert "i" not in found_names(CODE, text, share=0.0, size=0)


@pytest.mark.parametrize(
    ("work", "found"),
    [
        (f'x = {SQUARE} custom-call(v1), custom_call_target="f"', ["x"]),
        (f'x = {SQUARE} custom-call(v1), custom_call_target="MoveToHost"', []),
        ("x = f32[262144] reshape(v1)", []),
        (f"x = ({SQUARE}, {SQUARE}, u32[]) copy-start(v1) k = {SQUARE} copy-done(x)", []),
        (f"x = (({SQUARE}), bf16[512,512], u32[]) async-start(v1), calls=converted "
         "k = bf16[512,512] async-done(x)", []),
    ],
    ids=["call", "identity", "reshape", "copy-start", "async-start"],
)  # fmt: skip
def test_what_may_cost_nothing_or_is_in_two_parts_is_not_found(work: str, found: list[str]) -> None:
    text = repeating(f"{work} y = {SQUARE} fusion(v2), kind=kLoop, calls=negated")
    assert found_names(CODE, text) == found


def test_costs_are_those_of_kernels_of_one_device() -> None:
    assert check(CODE, UNPARTITIONED).verdict is Verdict.NONE
    work = f"x = {SQUARE} sine(v1) y = {SQUARE} add(x, v2)"
    unfused = in_loop(work, "v1, y", SQUARE, SQUARE, header="replica_count=1")
    assert check(CODE, unfused).verdict is Verdict.NONE


def test_hoisting_saves_the_bytes_that_are_claimed() -> None:
    page = explain(CODE)
    assert page is not None
    before, after = (part.partition("```")[0] for part in page.text.split("```hlo\n")[1:3])
    (found,) = violations(CODE, before)
    saved = [CostAnalysis(parse_module(text)).module().bytes_accessed for text in (before, after)]
    assert found.impact.moved == saved[0] - saved[1]
