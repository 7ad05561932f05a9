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
    # From the host.
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


def test_reasons_are_said() -> None:
    reasons = [missed(body, {"is_layout_sensitive": True}) for body in STAYS[1:3]]
    assert "%b does more than splitting or merging dimensions" in reasons[0]
    assert "a layout has more than an order, or the memory spaces differ" in reasons[1]
