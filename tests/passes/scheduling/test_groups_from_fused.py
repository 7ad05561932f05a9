"""Fusions that take over the scheduling group of what they fuse: no members to the checks that
follow."""

from __future__ import annotations

from typing import Any

import pytest

from hloopt.diagnostics import PassRefused
from hloopt.ir.attributes.scheduling_annotations import group_of
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

GROUP = ', frontend_attributes={_scheduling_group_id="1"}'
OUTSIDE, INSIDE = (GROUP, ""), ("", GROUP)


def members(body: str, annotation: tuple[str, str], **options: Any) -> list[str]:
    """The annotated instructions of a module, in which `FUSION` is a fusion that is annotated, or
    fuses what is."""
    on_fusion, on_fused = annotation
    body = body.replace("FUSION", f"kind=kLoop, calls=fused{on_fusion}").replace("GROUP", GROUP)
    module = parse_module(
        "HloModule m\nfused { x = f32[16] parameter(0) ROOT y = f32[16] negate(x)"
        f"{on_fused} }}\nENTRY e {{ p = f32[8] parameter(0) q = f32[16] parameter(1) {body} }}"
    )
    create_pass("legalize-scheduling-annotations", options).run(module, PassContext())
    return [i.name for i in module.entry.instructions if group_of(i) == 1]


GATHER = """
  s = (f32[8], f32[16]) all-gather-start(p), dimensions={0}GROUP
  d = f32[16] all-gather-done(s)GROUP
"""
BETWEEN = f"""{GATHER}
  b = f32[16] add(d, q)
  f = f32[16] fusion(b), FUSION
  c = f32[16] add(f, q)
  ROOT r = f32[16] sine(c)GROUP
"""


def test_a_fusion_that_took_over_is_a_gap() -> None:
    body = f"{GATHER} f = f32[16] fusion(d), FUSION ROOT r = f32[16] add(f, q)GROUP"
    assert members(body, OUTSIDE) == ["s", "d", "f", "r"]
    with pytest.raises(PassRefused, match="'%f': Support for annotation groups with gaps"):
        members(body, INSIDE)


def test_no_path_leads_from_or_to_it() -> None:
    body = f"{GATHER} b = f32[16] add(d, q) ROOT f = f32[16] fusion(b), FUSION"
    assert members(body, INSIDE) == ["s", "d", "f"]
    with pytest.raises(PassRefused, match="'%b': Support for annotation groups with gaps"):
        members(body, OUTSIDE)


def test_what_is_around_it_cannot_grow_over_it() -> None:
    assert members(BETWEEN, OUTSIDE, propagate_annotation=True) == ["s", "d", "b", "f", "c", "r"]
    with pytest.raises(PassRefused, match="'%f': it is between members of scheduling group 1, but"):
        members(BETWEEN, INSIDE, propagate_annotation=True)


def test_nothing_is_filled_up_to_it_or_from_it() -> None:
    """An annotated fusion with a chain before and behind makes the chain join."""
    to_it = f"{GATHER} b = f32[16] sine(d) ROOT f = f32[16] fusion(b), FUSION"
    assert members(to_it, OUTSIDE) == ["s", "d", "b", "f"]
    assert members(to_it, INSIDE) == ["s", "d", "f"]
    from_it = f"{GATHER} f = f32[16] fusion(q), FUSION b = f32[16] sine(f)"
    from_it += " ROOT r = f32[16] add(b, d)GROUP"
    assert members(from_it, OUTSIDE) == ["s", "d", "f", "b", "r"]
    assert members(from_it, INSIDE) == ["s", "d", "f", "r"]


def test_it_stays_where_its_group_goes() -> None:
    body = "a = f32[8] negate(p)GROUP f = f32[16] fusion(q), FUSION ROOT b = f32[8] sine(a)GROUP"
    assert members(body, OUTSIDE) == []
    assert members(body, INSIDE) == ["f"]
