"""Rules of algsimp that leave alone what they would compute out of the range of a type."""

from __future__ import annotations

import pytest
from tests.passes.simplification.algsimp.programs import missed

_PART = (
    "x = f32[300] parameter(0) i = s8[] parameter(1) j = s8[] parameter(2) "
    "c = f32[90] parameter(3) d = f32[200] dynamic-slice(x, i), dynamic_slice_sizes={200} "
)
_P = "p = bf16[] parameter(0) q = bf16[] parameter(1) a = bf16[] constant({a}) "
_SPREAD = (
    "p = bf16[4] parameter(0) a = bf16[] constant(1e38) x = bf16[4] broadcast(a), dimensions={} "
    "b = bf16[] constant(1e9) y = bf16[4] broadcast(b), dimensions={} i = bf16[4] multiply(p, x) "
)


@pytest.mark.parametrize(
    "rest",
    [
        "ROOT r = f32[90] dynamic-slice(d, j), dynamic_slice_sizes={90}",
        "u = f32[200] dynamic-update-slice(d, c, j) "
        "ROOT r = f32[300] dynamic-update-slice(x, u, i)",
    ],
)
def test_sums_of_offsets_do_not_overflow(rest: str) -> None:
    assert "the sum of the offsets may overflow" in missed(_PART + rest, {})


@pytest.mark.parametrize(
    ("a", "b", "rest"),
    [
        ("2e38", "3e38", "i = bf16[] add(p, a) ROOT r = bf16[] add(i, b)"),
        ("-2e38", "-3e38", "i = bf16[] subtract(a, p) ROOT r = bf16[] add(i, b)"),
        ("1e38", "4", "i = bf16[] multiply(p, a) ROOT r = bf16[] multiply(i, b)"),
        ("1e-30", "1e-9", "i = bf16[] multiply(p, a) ROOT r = bf16[] multiply(i, b)"),
        ("1e38", "4", "i = bf16[] multiply(p, a) j = bf16[] multiply(q, b) "
         "ROOT r = bf16[] multiply(i, j)"),
    ],
)  # fmt: skip
def test_constants_are_not_merged_out_of_range(a: str, b: str, rest: str) -> None:
    reasons = missed(f"{_P.format(a=a)}b = bf16[] constant({b}) {rest}", {})
    assert [r for r in reasons if r.endswith(": out of range")]


def test_broadcast_constants_are_not_merged_out_of_range() -> None:
    reasons = missed(f"{_SPREAD}ROOT r = bf16[4] multiply(i, y)", {})
    assert any(reason.endswith(": out of range") for reason in reasons)


def test_constants_that_undo_each_other_are_merged() -> None:
    body = f"{_P.format(a=1.5)}b = bf16[] constant(-1.5) i = bf16[] add(p, a) "
    assert missed(f"{body}ROOT r = bf16[] add(i, b)", {}) == []
