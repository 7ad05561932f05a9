"""Instructions of a body that compute the same in every trip."""

from __future__ import annotations

import pytest

from hloopt.analysis.loops.invariance import LoopInvariance
from hloopt.ir import Opcode
from hloopt.text import parse_module

COUNTER = """
  i = s32[] get-tuple-element(p), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
"""
LOOP = """HloModule m, replica_count=2
sum {{ a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }}
drawing {{
  low = f32[] parameter(0)
  high = f32[] parameter(1)
  ROOT drawn = f32[4] rng(low, high), distribution=rng_uniform
}}
plain {{ given = f32[4] parameter(0) ROOT negated = f32[4] negate(given) }}
condition {{
  tested = (s32[], f32[4], f32[4]) parameter(0)
  j = s32[] get-tuple-element(tested), index=0
  ten = s32[] constant(10)
  ROOT less = pred[] compare(j, ten), direction=LT
}}
body {{
  p = (s32[], f32[4], f32[4]) parameter(0){counter}
  w = f32[4] get-tuple-element(p), index=1
  x = f32[4] get-tuple-element(p), index=2
  {work}
  y = f32[4] add(x, r)
  ROOT t = (s32[], f32[4], f32[4]) tuple(next, {handed_on}, y)
}}
ENTRY e {{
  first = f32[4] parameter(0)
  zero = s32[] constant(0)
  state = (s32[], f32[4], f32[4]) tuple(zero, first, first)
  ROOT loop = (s32[], f32[4], f32[4]) while(state), condition=condition, body=body
}}
"""


def invariant(text: str) -> set[str]:
    module = parse_module(text)
    [loop] = [i for i in module.entry.instructions if i.opcode is Opcode.WHILE]
    invariance = LoopInvariance(module)
    assert invariance.of(loop) is invariance.of(loop)
    return {instruction.name for instruction in invariance.of(loop)}


def invariant_of(work: str, handed_on: str = "w") -> set[str]:
    return invariant(LOOP.format(counter=COUNTER, work=work, handed_on=handed_on))


@pytest.mark.parametrize(
    ("work", "is_invariant"),
    [
        ("r = f32[4] negate(w)", True),
        ("r = f32[4] fusion(w), kind=kLoop, calls=plain", True),
        ("r = f32[4] all-reduce(w), replica_groups={}, channel_id=1, to_apply=sum", True),
        ('r = f32[4] custom-call(w), custom_call_target="f"', True),
        ("r = f32[4] constant({1,2,3,4})", True),
        ("u = (f32[4], f32[4]) tuple(w, x) r = f32[4] get-tuple-element(u), index=0", True),
        (
            "u = (f32[4], f32[4]) tuple(w, x) o = (f32[4], f32[4]) opt-barrier(u) "
            "r = f32[4] get-tuple-element(o), index=0",
            True,
        ),
        (
            "o = (s32[], f32[4], f32[4]) opt-barrier(p) "
            "r = f32[4] get-tuple-element(o), index=1",
            True,
        ),
        ("d = f32[2,2] custom-call(w), custom_call_target=\"f\" r = f32[4] reshape(d)", True),
        (
            "s = (f32[4], f32[4]) custom-call(w), custom_call_target=\"f\" "
            "r = f32[4] get-tuple-element(s), index=0",
            True,
        ),
        ("r = f32[4] negate(x)", False),
        ("r = f32[4] add(w, x)", False),
        ("u = (f32[4], f32[4]) tuple(w, x) r = f32[4] get-tuple-element(u), index=1", False),
        ("c = f32[] constant(0) r = f32[4] rng(c, c), distribution=rng_uniform", False),
        ("c = f32[] constant(0) r = f32[4] fusion(c, c), kind=kLoop, calls=drawing", False),
        (
            'r = f32[4] custom-call(w), custom_call_target="f", custom_call_has_side_effect=true',
            False,
        ),
        (
            "a = token[] after-all() n = (f32[4], token[]) infeed(a) "
            "r = f32[4] get-tuple-element(n), index=0",
            False,
        ),
    ],
)  # fmt: skip
def test_what_is_computed_of_invariant_values_is_invariant(work: str, is_invariant: bool) -> None:
    found = invariant_of(work)
    assert ("r" in found) is is_invariant
    assert {"one", "w"} <= found
    assert found.isdisjoint(("p", "i", "next", "x", "y", "t"))


def test_an_element_is_invariant_where_every_trip_hands_it_on() -> None:
    assert {"w", "k"} <= invariant_of("r = f32[4] negate(w) k = f32[4] copy(w)", "k")
    assert invariant_of("r = f32[4] negate(w)", "r").isdisjoint(("w", "r"))
    assert invariant_of("r = f32[4] negate(w)", "x").isdisjoint(("w", "r"))


@pytest.mark.parametrize(("root", "found"), [("ROOT p", {"p", "n"}), ("p", set[str]())])
def test_a_state_that_is_no_tuple(root: str, found: set[str]) -> None:
    negated = "n" if root.startswith("ROOT") else "ROOT n"
    text = f"""HloModule m
condition {{ tested = s32[] parameter(0) ROOT c = pred[] constant(false) }}
body {{ {root} = s32[] parameter(0) {negated} = s32[] negate(p) }}
ENTRY e {{ first = s32[] parameter(0) ROOT w = s32[] while(first), condition=condition, body=body }}
"""
    assert invariant(text) == found
