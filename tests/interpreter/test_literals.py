from __future__ import annotations

import math

import numpy as np
import pytest

from hloopt.interpreter.errors import RunError
from hloopt.interpreter.literals import literal_value
from hloopt.interpreter.values import Value, dtype_of
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.shape import array_shape


def _value(element: str, literal: str, *dimensions: int) -> Value:
    return literal_value(literal, array_shape(element, dimensions))


@pytest.mark.parametrize("name", [e.name for e in ELEMENT_TYPES.values() if e.is_integral])
def test_integers_at_their_limits(name: str) -> None:
    size = 1 << ELEMENT_TYPES[name].bits
    low = -size // 2 if ELEMENT_TYPES[name].kind == "signed" else 0
    found = _value(name, f"{{{low}, {low + size - 1}}}", 2)
    assert found.dtype == dtype_of(ELEMENT_TYPES[name])
    assert [int(value) for value in found] == [low, low + size - 1]


@pytest.mark.parametrize("name", [e.name for e in ELEMENT_TYPES.values() if e.is_floating])
def test_floats_of_every_type(name: str) -> None:
    found = _value(name, "{1, 2, 0.5}", 3)
    assert found.dtype == dtype_of(ELEMENT_TYPES[name])
    assert found.astype(np.float64).tolist() == [1, 2, 0.5]


@pytest.mark.parametrize(
    ("element", "literal", "bits"),
    [
        ("f32", "nan(0x1)", 0x7F800001),
        ("f32", "-nan(0x200)", 0xFF800200),
        ("f64", "nan(0x5)", 0x7FF0000000000005),
        ("bf16", "-nan(0x3)", 0xFF83),
        ("f8e5m2", "nan(0x1)", 0x7D),
    ],
)
def test_payloads_of_nans(element: str, literal: str, bits: int) -> None:
    found = _value(element, literal)
    assert int(found.view(f"uint{found.dtype.itemsize * 8}")) == bits


def test_special_forms() -> None:
    assert _value("u64", "{-1, 9}", 2).tolist() == [2**64 - 1, 9]
    assert _value("pred", "{1, 0, true}", 3).tolist() == [True, False, True]
    assert _value("s32", "7", 2, 2).tolist() == [[7, 0], [0, 0]]
    assert _value("f32", "{ /*i0=0*/ {1, 2}, {3, -inf} }", 2, 2).tolist() == [
        [1, 2],
        [3, -math.inf],
    ]
    assert _value("f32", "{{}, {}}", 2, 0).shape == (2, 0)
    assert _value("c64", "{(1, -2.5), (0, inf)}", 2).tolist() == [1 - 2.5j, complex(0, math.inf)]
    assert _value("c128", "(1, 2)").tolist() == 1 + 2j
    assert np.isnan(_value("c64", "(nan(0x5), 1)").real)


def test_values_that_were_left_out_are_an_error() -> None:
    with pytest.raises(RunError, match="left out"):
        _value("f32", "{...}", 3)
