"""Results of operations in which several floating-point types meet."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from tests.interpreter.running import run
from tests.interpreter.several_devices import entry, run_on

BF16 = np.dtype(ml_dtypes.bfloat16)
X = np.array([1.0, 1.00390625, 3.0, -2.5], np.float32)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("bf16[] reduce(x, zero), dimensions={0}, to_apply=sum", 2.5),
        ("f32[] reduce(low, zero), dimensions={0}, to_apply=sum", 2.5),
        ("bf16[4] add(x, x)", [2.0, 2.0, 6.0, -5.0]),
        ("f32[4] add(low, x)", [2.0, 2.00390625, 6.0, -5.0]),
        ("bf16[] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}", 17.25),
        ("bf16[4] select(p, x, low)", [1.0, 1.0, 3.0, -2.5]),
        ("f32[8] concatenate(low, x), dimensions={0}", [1, 1, 3, -2.5, 1, 1.00390625, 3, -2.5]),
        ("bf16[2] reduce-window(x, zero), window={size=2 stride=2}, to_apply=sum", [2.0, 0.5]),
        (
            "(bf16[], f32[]) reduce(x, x, zero, zero), dimensions={0}, to_apply=two",
            (2.5, 2.50390625),
        ),
    ],
)
def test_a_result_has_the_type_that_is_stated(line: str, expected: object) -> None:
    text = entry(
        "x = f32[4] parameter(0)",
        "low = bf16[4] convert(x)",
        "zero = f32[] constant(0)",
        "p = pred[4] constant({true, false, true, false})",
        f"ROOT r = {line}",
    ).replace(
        "ENTRY",
        """two {
          a = f32[] parameter(0)
          b = f32[] parameter(1)
          c = f32[] parameter(2)
          d = f32[] parameter(3)
          k = f32[] add(a, c)
          l = f32[] add(b, d)
          ROOT t = (f32[], f32[]) tuple(k, l)
        }
        ENTRY""",
    )
    found = run(text, X)
    found = found if isinstance(found, tuple) else (found,)
    stated = [BF16 if "bf16" in part else np.float32 for part in line.split(")")[0].split(", ")]
    assert [array.dtype for array in found] == stated[: len(found)]
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for array, values in zip(found, wanted, strict=True):
        assert array.astype(np.float32).tolist() == values


def test_devices_give_the_type_that_is_stated() -> None:
    text = entry(
        "x = f32[4] parameter(0)",
        "ROOT r = bf16[4] all-reduce(x), replica_groups={}, to_apply=sum",
    )
    for found in run_on(2, 1, text, [[X], [X]]):
        assert found.dtype == BF16
        assert found.astype(np.float32).tolist() == [2.0, 2.0, 6.0, -5.0]
