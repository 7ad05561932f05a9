"""Bytes that XLA:GPU gives arrays: elements narrower than a byte are packed."""

from __future__ import annotations

import pytest
from tests.memory.modules import module_text

from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import CPU, GPU, Backend
from hloopt.memory.sizes import GPU_SIZES
from hloopt.text import parse_module


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("s4[5]{0:E(4)}", 3),
        ("s4[5]", 3),
        ("u4[3,7]", 11),
        ("s2[9]", 3),
        ("f4e2m1fn[8]", 4),
        ("s4[]", 1),
        ("s4[0]", 0),
        ("pred[5]", 5),
        ("s8[5]", 5),
        ("(s4[5], s4[5])", 16),
    ],
)
def test_narrow_elements_are_packed_whatever_the_layout_says(shape: str, expected: int) -> None:
    assert GPU_SIZES.bytes(parse_shape(shape)) == expected


@pytest.mark.parametrize(("backend", "expected"), [(GPU, 3), (CPU, 5)])
def test_constants_lose_their_packing_where_they_are_read(backend: Backend, expected: int) -> None:
    module = parse_module(module_text("c = s4[5]{0:E(4)} constant({1, 2, 3, 4, 5})"))
    (allocation,) = BufferAssignment.of(module, backend=backend).allocations
    assert allocation.is_constant
    assert allocation.size == expected
