"""Reading attributes in MLIR's syntax."""

from __future__ import annotations

import pytest

from hloopt.passes.precision.block_scaling.mlir_attributes import (
    dictionary_value,
    parse_array,
    parse_integer,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{a = 1}", "1"),
        ("{ a=[1, 2] , b = 3 }", "[1, 2]"),
        ('{b = "x, a = 2", a = 7 : i64}', "7 : i64"),
        ('{b = "\\"[", "a" = unit}', "unit"),
        (
            "{b = affine_map<(d0, d1) -> (d1)>, a = dense<[1, 2]> : tensor<2xi64>}",
            "dense<[1, 2]> : tensor<2xi64>",
        ),
        ("{b = {a = 1}, a}", None),
        ("{b}", None),
        ("{}", None),
        ("{a = 1 - 2}", "1 - 2"),
    ],
)
def test_an_entry_is_found_by_its_name(text: str, value: str | None) -> None:
    assert dictionary_value(text, "a") == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a = 1", "it is not in braces"),
        ("", "it is not in braces"),
        ("{a = [1}", "a bracket is not closed"),
        ("{a = 1]}", "a bracket is closed that is not open"),
    ],
)
def test_what_is_not_a_dictionary_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        dictionary_value(text, "b")


def test_arrays_are_read_three_levels_deep() -> None:
    assert parse_array("[[[0 : i64], []], [x, [1]], 2]") == [[["0 : i64"], []], ["x", ["1"]], "2"]
    assert parse_array("[[[[1]]]]") == [[["[1]"]]]
    assert parse_array("dense<1>") == "dense<1>"


@pytest.mark.parametrize(
    ("text", "number"),
    [("2", 2), (" -1 : i64 ", -1), ("2.5", None), ('"2"', None), ("2 : ", None), ([], None)],
)
def test_integers_may_have_a_type(text: str, number: int | None) -> None:
    assert parse_integer(text) == number
