"""What operations round, and what they do not."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from hloopt.interpreter.exactness import rounds, sums_are_exact
from hloopt.interpreter.values import Array
from hloopt.text import parse_module


@pytest.mark.parametrize(
    ("dtype", "largest", "is_exact"),
    [
        (np.float32, 2**10, True),
        (np.float32, 2**13, False),
        (np.int64, 2**20, True),
        (np.int64, 2**30, False),
        (ml_dtypes.int4, 7, True),
    ],
)
def test_sums_of_few_products_are_exact(dtype: type, largest: int, is_exact: bool) -> None:
    numbers: Array = np.array([1, largest], dtype)
    assert sums_are_exact([numbers, numbers], 4) is is_exact


@pytest.mark.parametrize(
    ("target", "result", "is_rounded"),
    [
        ("__op$block_scaled_dot", "f32[4,4]", True),
        ("__cudnn$blockScaledDot", "(f32[4,4], u8[0])", True),
        ("__cudnn$blockScaledDot", "(s32[4,4], u8[0])", False),
        ("mine", "f32[4,4]", False),
    ],
)
def test_products_of_block_scaled_tensors_are_rounded(
    target: str, result: str, is_rounded: bool
) -> None:
    module = parse_module(
        f'ENTRY e {{ ROOT r = {result} custom-call(), custom_call_target="{target}" }}'
    )
    assert rounds(module.entry.root) is is_rounded
