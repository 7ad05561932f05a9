"""Copies whose layouts algsimp moves through bitcasts and reshapes."""

from __future__ import annotations

import pytest
from tests.passes.simplification.algsimp.programs import missed, program, simplified, written

from hloopt.equivalence import Reference, RunSettings
from hloopt.text import parse_module

FIRES = [
    # The layout of the source goes through the bitcast.
    ("copy-bitcast-copy", "p = f32[4,6,5]{1,0,2} parameter(0) c = f32[4,6,5]{2,1,0} copy(p) "
     "b = f32[24,5]{1,0} bitcast(c) ROOT r = f32[24,5]{0,1} copy(b)", "bitcast(parameter)"),
    ("copy-bitcast-copy", "p = f32[24,5]{0,1} parameter(0) c = f32[24,5]{1,0} copy(p) "
     "b = f32[4,6,5]{2,1,0} bitcast(c) ROOT r = f32[4,6,5]{1,2,0} copy(b)",
     "copy(bitcast(parameter))"),
    # That of the result goes above it.
    ("copy-bitcast-copy", "p = f32[4,6,5]{0,2,1} parameter(0) c = f32[4,6,5]{2,1,0} copy(p) "
     "b = f32[24,5]{1,0} bitcast(c) ROOT r = f32[24,5]{0,1} copy(b)",
     "bitcast(copy(parameter))"),
    # A bitcast that transposes.
    ("copy-bitcast-copy", "p = f32[4,6]{0,1} parameter(0) c = f32[4,6]{1,0} copy(p) "
     "b = f32[6,2,2]{0,2,1} bitcast(c) ROOT r = f32[6,2,2]{1,2,0} copy(b)",
     "copy(bitcast(parameter))"),
    # Tiles that divide the same dimensions, or the minor part of one that is split.
    ("copy-bitcast-copy", "p = bf16[16,5,64]{2,0,1:T(8,128)(2,1)} parameter(0) "
     "c = bf16[16,5,64]{0,2,1:T(8,128)(2,1)} copy(p) "
     "b = bf16[16,5,2,32]{0,3,2,1:T(8,128)(2,1)} bitcast(c) "
     "ROOT r = bf16[16,5,2,32]{1,3,2,0:T(8,128)(2,1)} copy(b)", "bitcast(copy(parameter))"),
    ("copy-bitcast-copy", "p = bf16[16,5,64]{0,2,1:T(8,128)} parameter(0) "
     "c = bf16[16,5,64]{2,1,0:T(8,128)} copy(p) "
     "b = bf16[16,5,2,32]{3,2,1,0:T(8,128)} bitcast(c) "
     "ROOT r = bf16[16,5,2,32]{1,3,2,0:T(8,128)} copy(b)", "copy(bitcast(parameter))"),
    ("reshape-of-copy", "p = f32[4,6,5]{1,0,2} parameter(0) c = f32[4,6,5]{0,1,2} copy(p) "
     "ROOT r = f32[24,5]{1,0} reshape(c)", "copy(bitcast(parameter))"),
    ("copy-of-moving-reshape", "p = f32[4,6,5]{0,1,2} parameter(0) a = f32[24,5]{1,0} reshape(p) "
     "ROOT r = f32[24,5]{0,1} copy(a)", "bitcast(copy(parameter))"),
    ("copy-of-moving-reshape", "p = f32[2,3,4,5]{0,1,2,3} parameter(0) "
     "a = f32[6,4,5]{2,1,0} reshape(p) ROOT r = f32[6,4,5]{1,0,2} copy(a)",
     "bitcast(copy(parameter))"),
]  # fmt: skip
STAYS = [
    # Dimensions that are merged are apart in both layouts.
    "p = f32[4,6,5]{0,2,1} parameter(0) c = f32[4,6,5]{2,1,0} copy(p) "
    "b = f32[24,5]{1,0} bitcast(c) d = f32[24,5]{0,1} copy(b) ROOT t = (f32[24,5]{0,1}, "
    "f32[24,5]{1,0}) tuple(d, b)",
    # Dimensions are divided anew.
    "p = f32[4,6]{0,1} parameter(0) c = f32[4,6]{1,0} copy(p) b = f32[6,4]{1,0} bitcast(c) "
    "ROOT r = f32[6,4]{0,1} copy(b)",
    # Tiles that are divided, of the dimension that is most minor and of the next one.
    "p = f32[16,5,64]{2,1,0:T(8,128)} parameter(0) c = f32[16,5,64]{0,2,1:T(8,128)} copy(p) "
    "b = f32[16,5,2,32]{0,3,2,1:T(8,128)} bitcast(c) "
    "ROOT r = f32[16,5,2,32]{3,2,1,0:T(8,128)} copy(b)",
    "p = f32[16,5,24]{2,1,0:T(8,128)} parameter(0) c = f32[16,5,24]{0,2,1:T(8,128)} copy(p) "
    "b = f32[16,5,2,12]{0,3,2,1:T(8,128)} bitcast(c) "
    "ROOT r = f32[16,5,2,12]{1,3,2,0:T(8,128)} copy(b)",
    "p = f32[16,5,24]{2,1,0:T(8,128)} parameter(0) c = f32[16,5,24]{0,2,1:T(8,128)} copy(p) "
    "b = f32[16,5,2,12]{0,3,2,1:T(8,128)} bitcast(c) "
    "ROOT r = f32[16,5,2,12]{3,2,1,0:T(8,128)} copy(b)",
    "p = f32[16,64]{0,1:T(*,128)} parameter(0) c = f32[16,64]{1,0:T(*,128)} copy(p) "
    "b = f32[16,2,32]{2,1,0:T(*,128)} bitcast(c) "
    "ROOT r = f32[16,2,32]{0,2,1:T(*,128)} copy(b)",
    # From the host, and in it.
    "p = f32[4,6,5]{1,0,2:S(5)} parameter(0) c = f32[4,6,5]{2,1,0:S(5)} copy(p) "
    "b = f32[24,5]{1,0:S(5)} bitcast(c) ROOT r = f32[24,5]{0,1:S(5)} copy(b)",
    "p = f32[4,6,5]{1,0,2:S(5)} parameter(0) c = f32[4,6,5]{2,1,0} copy(p) "
    "b = f32[24,5]{1,0} bitcast(c) ROOT r = f32[24,5]{0,1} copy(b)",
    "p = f32[4,6,5]{1,0,2:S(5)} parameter(0) c = f32[4,6,5]{0,1,2} copy(p) "
    "ROOT r = f32[24,5]{1,0} reshape(c)",
]


@pytest.mark.parametrize(("name", "body", "expected"), FIRES)
def test_layouts_go_through(name: str, body: str, expected: str) -> None:
    after, context = simplified(body, is_layout_sensitive=True)
    assert written(after.entry.root) == expected, context.statistics
    assert Reference(parse_module(program(body)), RunSettings()).compare(after, "bits") is None


@pytest.mark.parametrize("body", STAYS)
def test_layouts_stay(body: str) -> None:
    _, context = simplified(body, is_layout_sensitive=True)
    assert context.statistics == {}


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (1, "%b does more than splitting or merging dimensions"),
        (2, "the tiles of the layouts do not go through the bitcast"),
        (-2, "the layouts differ in more than their orders, or one is of host memory"),
        (-1, "a layout has more than an order, or the memory spaces differ"),
    ],
)
def test_reasons_are_said(number: int, reason: str) -> None:
    assert reason in missed(STAYS[number], {"is_layout_sensitive": True})
