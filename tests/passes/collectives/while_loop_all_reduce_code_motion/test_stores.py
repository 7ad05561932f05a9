"""The part of each result that a loop stores, and the region that all of them take."""

from __future__ import annotations

import pytest
from tests.passes.checked_run import run_checked
from tests.passes.collectives.test_while_loop_all_reduce_code_motion import NAME, loop
from tests.passes.collectives.while_loop_all_reduce_code_motion.test_sums import R, left, stays

from hloopt.ir import Opcode


@pytest.mark.parametrize("limit", [47, 48])
def test_results_up_to_the_limit_are_stored(limit: int) -> None:
    """Three results of four floats."""
    body = R + (
        "row = f32[1,4] reshape(r) zero = s32[] constant(0) "
        "n = f32[3,4] dynamic-update-slice(s, row, i, zero)"
    )
    options = {"xla_while_loop_all_reduce_dus_code_motion_max_size_bytes": limit}
    if limit == 48:
        left(body, "f32[3,4]", **options)
    else:
        assert stays(body, "f32[3,4]", **options) == [
            "its results are 48 bytes in all trips, more than 47"
        ]


def stored(update: str, shape: str, before: str = "") -> str:
    return f"{R}zero = s32[] constant(0) two = s32[] constant(2) {before}n = {shape} {update}"


@pytest.mark.parametrize(
    ("body", "shape", "region"),
    [
        (stored("dynamic-update-slice(s, row, i, zero)", "f32[3,4]",
                "row = f32[1,4] reshape(r) "), "f32[3,4]", None),
        (stored("dynamic-update-slice(s, row, i, one)", "f32[3,5]",
                "row = f32[1,4] reshape(r) "), "f32[3,5]", "{[0:3], [1:5]}"),
        (stored("dynamic-update-slice(s, row, one, i)", "f32[6,3]",
                "row = f32[4,1] reshape(r) "), "f32[6,3]", "{[1:5], [0:3]}"),
        (stored("dynamic-update-slice(s, row, back, zero)", "f32[3,4]",
                "back = s32[] subtract(two, i) row = f32[1,4] reshape(r) "), "f32[3,4]", None),
        (stored("dynamic-update-slice(s, row, zero, two)", "f32[1,6]",
                "row = f32[1,4] reshape(r) "), "f32[1,6]", "{[0:1], [2:6]}"),
        (stored("dynamic-update-slice(s, wide, i, one)", "f32[4,9]",
                "zf = f32[] constant(0) row = f32[1,4] reshape(r) "
                "b = f32[1,6] broadcast(zf), dimensions={} "
                "wide = f32[1,6] dynamic-update-slice(b, row, zero, two) "),
         "f32[4,9]", "{[0:3], [3:7]}"),
        (stored("dynamic-update-slice(s, row, i, zero)", "bf16[3,4]",
                "d = bf16[4] convert(r) row = bf16[1,4] reshape(d) "),
         "bf16[3,4]", None),
    ],
)  # fmt: skip
def test_the_region_that_a_loop_stores(body: str, shape: str, region: str | None) -> None:
    module = left(body, shape)
    slices = [i.attributes["slice"] for i in module.entry.instructions if i.opcode is Opcode.SLICE]
    assert slices == ([] if region is None else [region])


@pytest.mark.parametrize(
    ("body", "shape", "reason"),
    [
        (stored("dynamic-update-slice(s, row, i, zero)", "f32[2,4]",
                "row = f32[1,4] reshape(r) "), "f32[2,4]", "index 0 of %n gets out of bounds"),
        (stored("dynamic-update-slice(s, row, i, one)", "f32[3,4]",
                "row = f32[1,4] reshape(r) "), "f32[3,4]", "index 1 of %n is out of bounds"),
        (stored("dynamic-update-slice(s, row, i, less)", "f32[3,4]",
                "less = s32[] constant(-1) row = f32[1,4] reshape(r) "), "f32[3,4]",
         "index 1 of %n is out of bounds"),
        (stored("dynamic-update-slice(s, row, back, zero)", "f32[3,4]",
                "back = s32[] subtract(one, i) row = f32[1,4] reshape(r) "), "f32[3,4]",
         "index 0 of %n is not the loop counter"),
        (stored("dynamic-update-slice(s, row, c, zero)", "f32[3,4]",
                "back = s32[] subtract(two, two) c = s32[] add(back, i) "
                "row = f32[1,4] reshape(r) "), "f32[3,4]",
         "index 0 of %n is not the loop counter"),
        (stored("dynamic-update-slice(s, row, i, zero)", "f32[3,4]",
                "look = f32[3,4] negate(s) row = f32[1,4] reshape(r) "), "f32[3,4]",
         "%look reads what it is stored in, too"),
        (stored("dynamic-update-slice(s, rows, i, zero)", "f32[4,2]",
                "rows = f32[2,2] reshape(r) "), "f32[4,2]",
         "index 0 of %n is not the loop counter"),
    ],
)  # fmt: skip
def test_stores_that_stay(body: str, shape: str, reason: str) -> None:
    assert stays(body, shape) == [reason]


def test_a_loop_that_only_stores_starts_from_what_it_did() -> None:
    body = R + (
        "row = f32[1,4] reshape(r) zero = s32[] constant(0) "
        "n = f32[3,4] dynamic-update-slice(s, row, i, zero)"
    )
    text = loop(body, shape="f32[3,4]")
    start = "start = (s32[], f32[4], f32[3,4]) tuple(zero, x0, s0)"
    held = "given = (s32[], f32[4], f32[3,4]) tuple(zero, x0, s0)\n"
    held += "start = (s32[], f32[4], f32[3,4]) opt-barrier(given)"
    module = run_checked(NAME, text.replace(start, held))
    (while_,) = module.instructions(Opcode.WHILE)
    assert while_.operands[0].name == "start"
