"""The comparison of matchings with known maps is strict, and `diff` meets it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import diff_agreement
from diff_lib import edits
from diff_lib.judge import Verdict, judge
from diff_lib.known_pair import Edit, KnownPair, make_pair
from diff_lib.sample import KINDS, draw
from hloopt.ir import Instruction
from hloopt.text import parse_module

TEXT = """HloModule m

ENTRY e {
  x = f32[4] parameter(0)
  y = f32[4] parameter(1)
  a = f32[4] add(x, y)
  s = f32[4] subtract(x, y)
  ROOT m = f32[4] multiply(a, s)
}
"""


def known(edit: Edit = edits.nothing, text: str = TEXT) -> KnownPair:
    pair = make_pair("m", parse_module(text), edit, "renumbered", Random(1))
    assert pair is not None
    return pair


def swapped(pair: KnownPair) -> dict[Instruction, Instruction]:
    """The known map with the partners of `a` and `s` exchanged."""
    first, second = (i for i in pair.before.instructions() if i.name in "as")
    partners = dict(pair.partners)
    partners[first], partners[second] = partners[second], partners[first]
    return partners


def test_the_known_map_is_equal_and_one_with_two_swapped_is_wrong() -> None:
    pair = known()
    assert judge(pair, pair.partners).verdict is Verdict.EQUAL
    found = judge(pair, swapped(pair))
    assert (found.verdict, found.contradictions) == (Verdict.WRONG, 2)


def test_equal_instructions_may_be_swapped_unless_operand_positions_tell_them_apart() -> None:
    pair = known(text=TEXT.replace("subtract", "add"))
    assert judge(pair, swapped(pair)).verdict is Verdict.WRONG
    pair = known(text=TEXT.replace("subtract", "add").replace("multiply(a, s)", "multiply(x, y)"))
    assert judge(pair, swapped(pair)).verdict is Verdict.AUTOMORPHIC


def test_pairs_that_are_not_found_count() -> None:
    pair = known()
    found = judge(pair, {})
    assert found.missing == 5
    assert found.verdict is Verdict.WRONG


def test_matchings_of_our_own_modules_are_those_known() -> None:
    counts = {kind.name: 1 for kind in KINDS}
    for kind, pair in draw(diff_agreement.sources(None), 3, counts):
        _, judgement = diff_agreement.match(pair)
        assert diff_agreement.is_met(kind, judgement), (kind.name, pair.name, judgement)


@pytest.mark.slow
def test_matchings_meet_the_bar(shared: Path) -> None:
    assert diff_agreement.main(["--shared", str(shared), "--scale", "3"]) == 0
