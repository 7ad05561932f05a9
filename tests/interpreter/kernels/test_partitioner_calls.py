"""Custom calls that the SPMD partitioner defines for itself."""

from __future__ import annotations

import numpy as np
import pytest

from hloopt.interpreter.errors import RunError
from hloopt.interpreter.kernels.partitioner_calls import (
    multi_rotate,
    multi_slice,
    rotate_right,
    wrap,
)
from hloopt.ir.instruction import Instruction
from hloopt.text import parse_module

ROW = np.arange(5, dtype=np.float32)


def call(target: str, config: str) -> Instruction:
    text = (
        "HloModule m\nENTRY e {\n  p = f32[5] parameter(0)\n  ROOT c = f32[5] custom-call(p), "
        f'custom_call_target="_SPMDInternalOp_{target}", backend_config="{config}"\n}}\n'
    )
    return parse_module(text).entry.root


def test_rotating_right_brings_the_last_elements_first() -> None:
    found = rotate_right(call("RotateRight", "dimension=0,amount=2"), ROW)
    np.testing.assert_array_equal(found, [3, 4, 0, 1, 2])


def test_rotations_go_from_left_to_right() -> None:
    config = "dimension=0,left_amount=2,right_amount=1,bufferize=0"
    found = multi_rotate(call("MultiRotate", config), ROW)
    assert isinstance(found, tuple)
    rows = [[2, 3, 4, 0, 1], [1, 2, 3, 4, 0], [0, 1, 2, 3, 4], [4, 0, 1, 2, 3]]
    np.testing.assert_array_equal(found, rows)


def test_slices_go_on_by_one_along_one_dimension() -> None:
    bounds = "start_indices=[1,0],limit_indices=[2,3],strides=[1,2]"
    config = f"dimension=1,amount=2,{bounds},bufferize=0"
    found = multi_slice(call("MultiSlice", config), np.arange(10).reshape(2, 5))
    assert isinstance(found, tuple)
    np.testing.assert_array_equal(found, [[[5, 7]], [[6, 8]], [[7, 9]]])


def test_wrapping_puts_the_other_end_on_both_sides() -> None:
    found = wrap(call("Wrap", "dimension=0,left_amount=1,right_amount=2"), ROW)
    np.testing.assert_array_equal(found, [4, 0, 1, 2, 3, 4, 0, 1])


@pytest.mark.parametrize(
    ("kernel", "target", "config", "name"),
    [
        (rotate_right, "RotateRight", "dimension=0", "amount"),
        (multi_rotate, "MultiRotate", "dimension=0,left_amount=1", "right_amount"),
        (multi_slice, "MultiSlice", "dimension=0,amount=1,start_indices=[0]", "limit_indices"),
        (wrap, "Wrap", "left_amount=1,right_amount=[2],dimension=0", "right_amount"),
    ],
)
def test_a_field_that_is_missing_is_named(
    kernel: object, target: str, config: str, name: str
) -> None:
    assert callable(kernel)
    with pytest.raises(RunError, match=f"its backend config has no '{name}'"):
        kernel(call(target, config), ROW)
