"""The gaps of scheduling groups that nothing can join to close: refused, and others let be."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.diagnostics import PassRefused
from hloopt.ir.attributes.scheduling_annotations import group_of
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module

CHECK = {"check_non_mitigatable_gap_only": True}
GROW = {"propagate_annotation": True}


def annotated(number: int) -> str:
    return f', frontend_attributes={{_scheduling_group_id="{number}"}}'


def module(on_first: str = "", on_second: str = "") -> str:
    """A group with two instructions between its members, and another group."""
    return f"""HloModule m
ENTRY e {{
  p = f32[16] parameter(0)
  q = f32[8] parameter(1)
  other = f32[16] collective-permute(p), source_target_pairs={{{{0,1}}}}{annotated(2)}
  s = (f32[8], f32[16]) all-gather-start(q), dimensions={{0}}{annotated(1)}
  d = f32[16] all-gather-done(s){annotated(1)}
  first = f32[16] add(d, p){on_first}
  second = f32[16] add(first, p){on_second}
  ROOT r = f32[16] add(second, p){annotated(1)}
}}"""


def run(text: str, **options: Any) -> bool:
    """Whether the pass changed anything, as it says itself."""
    found = parse_module(text)
    before = print_module(found)
    changed = create_pass("legalize-scheduling-annotations", options).run(found, PassContext())
    assert changed == (print_module(found) != before)
    return changed


def test_a_group_that_can_grow_is_let_be() -> None:
    assert not run(module(), **GROW, **CHECK)
    assert run(module(), **GROW)


@pytest.mark.parametrize("place", [(annotated(2), ""), ("", annotated(2))])
def test_a_group_around_a_member_of_another_is_refused(place: tuple[str, str]) -> None:
    name = "first" if place[0] else "second"
    message = f"'%{name}': it is between members of scheduling group 1, but it has an existing"
    for options in (GROW, {**GROW, **CHECK}):
        with pytest.raises(PassRefused, match=message):
            run(module(*place), **options)


def test_nothing_joins_a_group_that_is_refused() -> None:
    found = parse_module(module("", annotated(2)))
    with pytest.raises(PassRefused):
        create_pass("legalize-scheduling-annotations", GROW).run(found, PassContext())
    assert [group_of(i) for i in found.entry.instructions if i.name == "first"] == [None]


def test_without_growing_every_gap_is_refused_all_the_same() -> None:
    for options in ({}, CHECK):
        with pytest.raises(PassRefused, match="'%first': Support for annotation groups with gaps"):
            run(module(), **options)
