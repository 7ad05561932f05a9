"""Bytes of shapes."""

from __future__ import annotations

import pytest

from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.memory.sizes import CPU_SIZES, unpadded_bytes


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ("f32[3,5]{1,0}", 60),
        ("pred[7]", 7),
        ("s4[7]", 7),
        ("s4[7]{0:E(4)}", 4),
        ("u2[9]{0:E(2)}", 3),
        ("f4e2m1fn[8]", 8),
        ("c64[2]", 16),
        ("c128[]", 16),
        ("f32[0,5]", 0),
        ("f32[<=4,2]{1,0}", 40),
        ("f32[128,128]{1,0:T(8,128)}", 65536),
        ("token[]", 0),
        ("opaque[]", 8),
        ("()", 0),
        ("(f32[100], (f32[], s32[]))", 16),
    ],
)
def test_bytes_of_a_shape(shape: str, size: int) -> None:
    assert shape_bytes(parse_shape(shape)) == size


def test_each_part_of_a_tuple_has_its_bytes() -> None:
    assert CPU_SIZES.slots(parse_shape("(f32[2], (s8[3], f64[]), s32[4])")) == (24, 8, 16, 3, 8, 16)


@pytest.mark.parametrize(
    ("shape", "index", "size"),
    [
        ("f32[<=4,2]", (), 32),
        ("s4[7]{0:E(4)}", (), 7),
        ("(f32[2], s8[3])", (1,), 3),
        ("(f32[2], (s8[3], f64[5]))", (1, 0), 8),  # the last component, in the whole shape
        ("(f32[2], (s8[3], f64[5], f64[6]))", (1, 2), 16),
    ],
)
def test_unpadded_bytes_look_at_the_last_component_of_an_index(
    shape: str, index: tuple[int, ...], size: int
) -> None:
    assert unpadded_bytes(parse_shape(shape), index) == size
