"""Names are made unique as XLA does it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hloopt.ir.names import NameTable

NAMES = st.sampled_from(
    ("x", "x.0", "x.1", "x.00", "x.01", "x.1.2", "x.0.0", "x.1.0", "x.-1", "y", "x.clone")
)


def test_the_example_of_the_specification() -> None:
    table = NameTable()
    given_names = ("x.1", "x", "x.1", "x", "x.1", "x.2", "x.7")
    assert [table.unique(name) for name in given_names] == [
        *("x.1", "x", "x.2", "x.3", "x.4", "x.5", "x.7")
    ]


def test_a_bare_name_counts_as_suffix_zero() -> None:
    table = NameTable()
    assert [table.unique(name) for name in ("x", "x.0", "y.0", "y")] == ["x", "x.1", "y.0", "y.1"]


@pytest.mark.parametrize(
    ("names", "made"),
    [
        ("x.01 x.1", "x.1 x.0"),  # what XLA makes of each
        ("x.1 x.2 x.3 x.01", "x.1 x.2 x.3 x.0"),
        ("x x.00 x.007", "x x.1 x.7"),
        ("x.-1 x.-1 x.-0", "x.-1 x.0 x.1"),
        ("a.1 a.1.0 a.1.1 a.1.1", "a.1 a.1.0 a.1.1 a.1.2"),
        ("x. x. x..1", "x. x..1 x..2"),
        ("x.99999999999999999999 x.99999999999999999999",
         "x.99999999999999999999 x.99999999999999999999.1"),
    ],
)  # fmt: skip
def test_suffixes_are_numbers(names: str, made: str) -> None:
    table = NameTable()
    assert [table.unique(name) for name in names.split()] == made.split()


@pytest.mark.parametrize(
    ("given_names", "expected"),
    [
        (("x.01",), ("x.1",)),
        (("x.1", "x.01"), ("x.1", "x.0")),
        (("x", "x.01", "x.1"), ("x", "x.1", "x.2")),
        (("x.00", "x.0"), ("x.0", "x.1")),
        (("x.0", "x.0.0", "x.0"), ("x.0", "x.0.0", "x.1")),
        (("x.1.0", "x.1"), ("x.1.0", "x.1")),
    ],
)
def test_suffixes_are_numbers_and_only_a_bare_name_has_none(
    given_names: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    table = NameTable()
    assert tuple(map(table.unique, given_names)) == expected


@given(st.lists(NAMES, max_size=12))
def test_names_are_never_given_out_twice(names: list[str]) -> None:
    table = NameTable()
    made = [table.unique(name) for name in names]
    assert len(set(made)) == len(made)
    assert table.used == set(made)


@given(st.lists(NAMES, max_size=6), st.lists(NAMES, max_size=6))
def test_noted_names_clash_where_one_by_one_would_be_renamed(
    first: list[str], second: list[str]
) -> None:
    bulk, single = NameTable(), NameTable()
    for names in (first, second):
        bulk.note(names, " ".join(names))
    both = [*first, *second]
    assert bulk.has_clash == ([single.unique(name) for name in both] != both)
    assert bulk.used == set(both)
    if not bulk.has_clash:
        assert all(bulk.copy().unique(name) == single.copy().unique(name) for name in both)


def test_a_copy_goes_its_own_way() -> None:
    table = NameTable()
    table.unique("x")
    copy = table.copy()
    assert copy.unique("x") == "x.1"
    assert table.unique("x") == "x.1"
