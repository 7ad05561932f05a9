"""tools/memory_search_table.py: what a step by memory-search is compared with."""

from __future__ import annotations

from argparse import Namespace
from types import MappingProxyType

import pytest

import memory_search_table as table
from hloopt.passes.overlap.judging import Figures, Judge
from hloopt.text import parse_module

MODULE = """HloModule m, is_scheduled=true

ENTRY e {
  p = f32[1024] parameter(0)
  n = f32[1024] negate(p)
  ROOT r = f32[1024] negate(n)
}"""


def figures(seconds: float, allocated: int) -> Figures:
    return Figures(seconds, seconds, seconds, 0.0, allocated, MappingProxyType({}))


@pytest.mark.parametrize(
    ("alone", "found", "searched", "beside"),
    [
        (figures(2.0, 700), None, None, None),  # it fits, and memory-search does not
        (figures(2.0, 700), figures(3.0, 700), None, figures(3.0, 700)),
        (figures(2.0, 900), None, figures(1.5, 900), figures(1.5, 900)),
        (figures(2.0, 900), figures(3.0, 700), None, figures(3.0, 700)),
        (figures(2.0, 1000), None, None, figures(1.0, 1000)),  # the step as it is has less
        (figures(4.0, 900), figures(3.0, 700), figures(1.5, 900), figures(3.0, 700)),
    ],
)
def test_with_as_much_memory_as_rematerialization_alone_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
    alone: Figures,
    found: Figures | None,
    searched: Figures | None,
    beside: Figures | None,
) -> None:
    given = figures(1.0, 1000)
    by_limit = {750: (found, 1), 900: (searched, 1)}
    monkeypatch.setattr(Judge, "figures", lambda *_: given)
    monkeypatch.setattr(table, "_searched", lambda module, limit, *_: by_limit[limit])
    monkeypatch.setattr(table, "_rematerialized", lambda *_: alone)
    assert table._made("m", parse_module(MODULE), Namespace()).beside == beside
