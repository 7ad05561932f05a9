"""Numbers as people read them."""

from __future__ import annotations

import pytest

from hloopt.reports.console.units import human_change


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        (100, 116.2, "+16.2%"),
        (100, 97, "-3.0%"),
        (100, 0, "-100.0%"),
        (100_000, 99_999, "-<0.1%"),
        (100_000, 100_001, "+<0.1%"),
        (100, 999, "+899.0%"),
        (100, 1000, "x10"),
        (30, 512 << 20, "x17.9 M"),
    ],
)
def test_changes(old: float, new: float, text: str) -> None:
    assert human_change(old, new) == text
