"""Each shipped pass declares the pass of XLA that it follows, and headings for many options."""

from __future__ import annotations

import pytest

from hloopt.pass_framework.base import ModulePass
from hloopt.pass_framework.options import option_infos
from hloopt.pass_framework.registry import PASSES, find_pass

_MANY_OPTIONS = 13
"""More need headings on the page of a pass."""


_NOT_IN_XLA = {
    *("all-reduce-to-reduce-scatter", "collective-splitter", "collective-uncombiner"),
    *("combine-collectives", "memory-search", "overlap-search", "synchronize-collectives"),
    *("while-loop-residual-offloader", "while-loop-transpose-sinking"),
}
"""Single moves of a search, and the search."""


@pytest.mark.parametrize("name", PASSES)
def test_a_shipped_pass_names_the_pass_of_xla(name: str) -> None:
    xla = find_pass(name).xla
    assert (xla is None) == (name in _NOT_IN_XLA)
    if xla is None:
        return
    assert xla.class_name.rpartition("::")[2][0].isupper()
    assert xla.source.startswith("xla/")
    assert xla.source.endswith(".h")


def test_a_pass_of_another_package_need_not_follow_one() -> None:
    assert ModulePass.xla is None


@pytest.mark.parametrize("name", PASSES)
def test_headings_hold_each_option_once(name: str) -> None:
    declared = sorted(info.name for info in option_infos(find_pass(name)))
    grouped = sorted(n for names in find_pass(name).option_groups.values() for n in names)
    assert grouped == declared or (not grouped and len(declared) < _MANY_OPTIONS)
