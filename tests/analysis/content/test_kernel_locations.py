"""Locations in bodies of custom calls are left out; what else there is stays."""

from __future__ import annotations

import pytest

from hloopt.analysis.content.kernel_locations import without_locations


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("no locations", "no locations"),
        ('%0 = tt.load %p loc("a.py":1:2)\\n', "%0 = tt.load %p\\n"),
        ('%0 = tt.load %p loc(\\"a.py\\":1:2)\\n', "%0 = tt.load %p\\n"),
        ('%0 = a loc(callsite("f(x"("a.py":1:2) at "b.py":3:4)) b', "%0 = a b"),
        ('a loc(\\"f\\\\\\"(\\":1:2) b', "a b"),
        ('#loc3 = loc("a.py":1:2)\\n#loc = loc(unknown)\\nx', "\\n\\nx"),
        ("%arg0: i32 loc(#loc1), %arg1: i32 loc(#loc2)", "%arg0: i32, %arg1: i32"),
        ("block(x) tt.loc(x) $loc(x)", "block(x) tt.loc(x) $loc(x)"),
        ('a loc("never closed', 'a loc("never closed'),
    ],
)
def test_locations(body: str, kept: str) -> None:
    assert without_locations(body) == kept


def test_many_locations_take_linear_time() -> None:
    assert without_locations('x loc("a":1:2) ' * 100_000) == "x " * 100_000
    assert len(without_locations("x loc(" * 2_000)) == 12_000
