"""Validation finds planted miscompiles, and calls no right rewrite different."""

from __future__ import annotations

import pytest

import planted_miscompiles
from planted_lib.cases import Case, case
from planted_lib.miscompiles import MISCOMPILES
from planted_lib.rewrites import REWRITES

_NOT_FOUND = {"rarely taken branch": "branch 0 (%up) of"}
"""Named as not compared."""


@pytest.mark.parametrize("planted", MISCOMPILES, ids=lambda c: c.name)
def test_a_miscompile_is_found_or_named(planted: Case) -> None:
    verdict = planted_miscompiles.judge(planted)
    if planted.name in _NOT_FOUND:
        assert verdict.kind == "not compared"
        assert _NOT_FOUND[planted.name] in verdict.reason
    else:
        assert verdict.kind == "different", verdict.reason


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda c: c.name)
def test_a_right_rewrite_is_not_called_different(rewrite: Case) -> None:
    verdict = planted_miscompiles.judge(rewrite)
    assert verdict.kind in ("equal", "not compared", "on special values alone"), verdict.reason
    assert (verdict.kind == "on special values alone") <= (rewrite.preserves == "finite")


def test_there_are_as_many_as_the_bar_asks_for() -> None:
    assert (len(MISCOMPILES), len(REWRITES)) == (73, 37)
    assert len({c.name for c in (*MISCOMPILES, *REWRITES)}) == 110


def test_an_edit_has_to_be_of_one_place() -> None:
    with pytest.raises(ValueError, match="2 times"):
        _ = case("twice", "a a", "a", "b").rewritten
