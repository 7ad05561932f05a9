"""Names and original values that move into a caller."""

from __future__ import annotations

import pytest

from hloopt.passes.call_graph.call_metadata import CallMetadata
from hloopt.passes.call_graph.original_value import value_in_caller
from hloopt.text import parse_module


@pytest.mark.parametrize(
    ("prefix", "name", "expected"),
    [
        ("f", "x", "f/x"),
        ("f/", "/x/", "f/x"),
        ("f", "", "f"),
        ("f", "f/x", "f/x"),
        ("x", "xyz", "xyz"),
        ("", "x/", "x/"),
        ("f" * 1000, "x" * 23, f"{'f' * 1000}/{'x' * 23}"),
        ("f" * 1000, "x" * 24, "x" * 24),
    ],
)
def test_prefixes_are_put_in_front(prefix: str, name: str, expected: str) -> None:
    metadata = f', metadata={{op_name="{name}"}}' if name else ""
    module = parse_module(
        f"f {{ x = f32[] parameter(0){metadata} }}\n"
        "ENTRY e { p = f32[] parameter(0) ROOT c = f32[] call(p), to_apply=f"
        f', metadata={{op_name="{prefix}"}} }}'
    )
    updater = CallMetadata(module)
    parameter = module.computations["f"].root
    changed = updater.add_to(parameter, *updater.of(module.entry.root))
    assert changed == (expected != name)
    assert parameter.attributes.get("metadata") == f'{{op_name="{expected}"}}'


@pytest.mark.parametrize(
    ("value", "call", "expected"),
    [
        ('{{"n"}}', '{{"c"}}', '{{"c/n"}}'),
        ('{{"n" {0,1}}}', '{{"c" {2}}}', '{{"c/n" {0,1}}}'),
        ('{({"a"}, {"b" {1}})}', '{({"c"}, {"d"})}', '{({"c/a"}, {"c/b" {1}})}'),
        ('{{"n"}}', "{[synthetic_call]}", '{{"n"}}'),
        ('{{"n"}}', None, None),
        ('{{"n"}}', '{({}, {"d"})}', None),
    ],
)
def test_original_values_name_the_call_first(
    value: str, call: str | None, expected: str | None
) -> None:
    assert value_in_caller(value, call) == expected
