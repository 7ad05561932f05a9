"""Tolerances of passes that change precision: small modules, and slowly a sample of the corpus."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path
from statistics import median

import pytest

import precision_tolerance
from hloopt.text import parse_module
from hloopt.verifier import verify_module
from precision_lib.changes import CHANGES, Change
from precision_lib.plants import plant

CHAIN = """HloModule m

ENTRY e {
  p = f32[32,32]{1,0} parameter(0)
  q = bf16[32,32]{1,0} parameter(1)
  b = bf16[32,32]{1,0} convert(p)
  s = bf16[32,32]{1,0} multiply(b, q)
  t = bf16[32,32]{1,0} tanh(s)
  w = f32[32,32]{1,0} convert(t)
  v = f32[32,32]{1,0} multiply(w, w)
  x = f32[32,32]{1,0} exponential(v)
  y = bf16[32,32]{1,0} convert(x)
  z = f32[32,32]{1,0} convert(y)
  ROOT r = f32[32,32]{1,0} dot(z, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_right_change_is_valid_and_equal(change: Change) -> None:
    module = parse_module(CHAIN)
    assert change(module)
    verify_module(module)
    answer = precision_tolerance.compare(parse_module(CHAIN), module)
    assert answer.verdict == "equal", answer.reason
    assert answer.ratio is not None
    assert 1 <= answer.ratio <= 2 * precision_tolerance.MOST_TIMES


@pytest.mark.parametrize("seed", range(8))
def test_a_planted_error_is_valid_and_found(seed: int) -> None:
    module = parse_module(CHAIN)
    assert plant(module, random.Random(seed)) is not None
    verify_module(module)
    assert precision_tolerance.compare(parse_module(CHAIN), module).verdict == "different"


def test_passes_are_changes_too() -> None:
    dead = parse_module(CHAIN.replace("  ROOT", "  dead = f32[32,32]{1,0} negate(p)\n  ROOT"))
    assert precision_tolerance.passes_as_change("dce")(dead)
    assert not precision_tolerance.passes_as_change("dce")(dead)


def test_there_is_no_place_where_nothing_is_narrow() -> None:
    wide = CHAIN.replace("bf16", "f32").replace("convert(", "copy(")
    assert plant(parse_module(wide), random.Random(0)) is None
    assert not any(change(parse_module(wide)) for change in CHANGES.values())


@pytest.mark.slow
def test_a_sample_of_the_corpus(shared: Path) -> None:
    dice = random.Random(1)
    files = list(islice(precision_tolerance.narrow_modules(shared, 60, dice), 150))
    right, ratios = precision_tolerance.measure_changes(files[:50], CHANGES, verbose=False)
    assert right["equal"] >= 5
    assert not right["different"]
    assert median(ratios) <= 1.1 * precision_tolerance.MOST_TIMES  # of few
    planted = precision_tolerance.measure_plants(files, 20, dice, verbose=False)
    assert planted["different"] >= 0.9 * planted.total()
    assert planted.total() == 20
