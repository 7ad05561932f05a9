"""All gaps of all places of a module: in calls, branches, loops, and what runs meanwhile."""

from __future__ import annotations

from tests.memory.modules import LOOP_CONDITION, module_text

from hloopt.memory.advice.gaps import Gap, Places
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.text import parse_module


def places_of(*lines: str, before: str = "", least: int = 1) -> Places:
    module = parse_module(module_text(*lines, before=before))
    return Places(MemoryAnalysis.of(module), least)


def gaps(places: Places) -> dict[str, list[tuple[int, int]]]:
    """The gaps of each place, by the value that is kept.

    Around a position there is a gap if and only if the position lies inside it.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for place in places.all:
        seen: list[Gap] = []
        for position in range(places.end):
            gap = places.gap_at(place, position)
            if gap is not None:
                assert gap.before < position < gap.after
                if gap not in seen:
                    seen.append(gap)
                    name = places.analysis.name(gap.value)
                    found.setdefault(name, []).append((gap.before, gap.after))
    return found


def test_a_copy_is_under_way_from_its_start_to_its_done() -> None:
    places = places_of(
        "a = f32[100] parameter(0)",
        "b = f32[200] concatenate(a, a), dimensions={0}",
        "s = (f32[200], f32[200], u32[]) copy-start(b)",
        "c = f32[100] reverse(a), dimensions={0}",
        "d = f32[200] copy-done(s)",
        "e = f32[100] reverse(c), dimensions={0}",
        "f = f32[500] concatenate(b, d, e), dimensions={0}",
        "g = f32[1] slice(f), slice={[0:1]}",
        least=5,
    )
    assert gaps(places) == {
        "a": [(-1, 1), (1, 3), (3, 8)],
        "b": [(4, 6)],
        "s{0}": [(4, 6)],
        "c": [(3, 5)],
    }


def test_an_update_in_between_does_not_end_what_was_started() -> None:
    places = places_of(
        "a = f32[100] parameter(0)",
        "b = f32[200] concatenate(a, a), dimensions={0}",
        "s = ((f32[200]), f32[200], u32[]) async-start(b), calls=w",
        "c = f32[100] reverse(a), dimensions={0}",
        "u = ((f32[200]), f32[200], u32[]) async-update(s)",
        "d = f32[100] reverse(c), dimensions={0}",
        "z = f32[200] async-done(u)",
        "e = f32[100] reverse(d), dimensions={0}",
        "f = f32[500] concatenate(b, z, e), dimensions={0}",
        "g = f32[1] slice(f), slice={[0:1]}",
        before="""w { x = f32[200] parameter(0)
  v = f32[200] reverse(x), dimensions={0}
  ROOT y = f32[200] reverse(v), dimensions={0} }""",
        least=5,
    )
    # times: a b 0-1, wrapped x v y 2-4, s c u d z e f g 5-12
    assert gaps(places) == {
        "a": [(-1, 1), (1, 6), (6, 13)],
        "b": [(1, 3), (9, 11)],
        "y": [(9, 11)],  # it is written until the done
        "c": [(6, 8)],
        "d": [(8, 10)],
    }


def test_what_a_call_or_a_conditional_reads_is_in_use_throughout_it() -> None:
    called = """
f { x = f32[200] parameter(0)
  y = f32[200] reverse(x), dimensions={0}
  ROOT z = f32[100] slice(y), slice={[0:100]} }
g { x.1 = f32[200] parameter(0)
  y.1 = f32[200] reverse(x.1), dimensions={0}
  ROOT z.1 = f32[100] slice(y.1), slice={[0:100]} }
h { x.2 = f32[100] parameter(0)
  y.2 = f32[200] concatenate(x.2, x.2), dimensions={0}
  ROOT z.2 = f32[100] slice(y.2), slice={[0:100]} }"""
    places = places_of(
        "p = pred[] parameter(0)",
        "a = f32[100] parameter(1)",
        "b = f32[200] concatenate(a, a), dimensions={0}",
        "q = f32[100] reverse(a), dimensions={0}",
        "c = f32[100] call(b), to_apply=f",
        "d = f32[100] reverse(q), dimensions={0}",
        "k = f32[100] conditional(p, b, d), true_computation=g, false_computation=h",
        "l = f32[400] concatenate(k, c, d, d), dimensions={0}",
        "m = f32[300] concatenate(b, q), dimensions={0}",
        "n = f32[1] slice(m), slice={[0:1]}",
        "o = f32[1] slice(l), slice={[0:1]}",
        "r = f32[2] concatenate(n, o), dimensions={0}",
        before=called,
    )
    # times: p a b q 0-3, f 4-6, c d 7-8, g 9-11, h 12-14, k l m n o r 15-20
    assert gaps(places) == {
        "a": [(-1, 2), (3, 21)],
        "p": [(-1, 9), (15, 21)],
        "b": [(2, 4), (7, 9), (15, 17)],
        "q": [(3, 8), (8, 17)],
        "z": [(6, 16)],  # the call passes on what it computes
        "l": [(16, 19)],
        "n": [(18, 20)],
    }


NESTED = """
icond { p = (s32[], f32[100], f32[50]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  ROOT less = pred[] compare(i, i), direction=LT }
ibody { p.1 = (s32[], f32[100], f32[50]) parameter(0)
  i.1 = s32[] get-tuple-element(p.1), index=0
  x = f32[100] get-tuple-element(p.1), index=1
  y = f32[50] get-tuple-element(p.1), index=2
  w = f32[100] reverse(x), dimensions={0}
  v = f32[300] concatenate(w, w, w), dimensions={0}
  z = f32[100] slice(v), slice={[0:100]}
  ROOT t = (s32[], f32[100], f32[50]) tuple(i.1, z, y) }
"""
OUTER = """
body { p.2 = (s32[], f32[100]) parameter(0)
  i.2 = s32[] get-tuple-element(p.2), index=0
  x.2 = f32[100] get-tuple-element(p.2), index=1
  k = f32[200] concatenate(x.2, x.2), dimensions={0}
  m = f32[50] slice(x.2), slice={[0:50]}
  t1 = (s32[], f32[100], f32[50]) tuple(i.2, x.2, m)
  l1 = (s32[], f32[100], f32[50]) while(t1), condition=icond, body=ibody
  g0 = s32[] get-tuple-element(l1), index=0
  g1 = f32[100] get-tuple-element(l1), index=1
  g2 = f32[50] get-tuple-element(l1), index=2
  q = f32[350] concatenate(k, g1, g2), dimensions={0}
  z.2 = f32[100] slice(q), slice={[0:100]}
  ROOT t.2 = (s32[], f32[100]) tuple(g0, z.2) }
"""
LOOPS = (
    "a = f32[100] parameter(0)",
    "b = f32[200] concatenate(a, a), dimensions={0}",
    "y.1 = f32[100] copy(a)",
    "k.1 = s32[] parameter(1)",
    "t.3 = (s32[], f32[100]) tuple(k.1, y.1)",
    "l = (s32[], f32[100]) while(t.3), condition=cond, body=body",
    "r = f32[100] get-tuple-element(l), index=1",
    "e = f32[300] concatenate(b, r), dimensions={0}",
    "f = f32[1] slice(e), slice={[0:1]}",
)


def test_what_waits_around_a_loop_waits_for_all_its_iterations() -> None:
    places = places_of(*LOOPS, before=NESTED + LOOP_CONDITION + OUTER, least=5)
    steps = places.schedule.steps
    time = {step.name: number for number, step in enumerate(steps)}
    assert (time["l"], time["l1"], time["e"]) == (33, 26, 35)
    assert gaps(places) == {
        "a": [(-1, 1), (2, 37)],
        "b": [(1, 35)],
        "y.1": [(2, 5)],  # the state waits for the loop, not inside it
        "l{1}": [(33, 35)],
        "k": [(12, 30)],  # around the inner loop
        "m": [(13, 15), (26, 30)],
    }


def test_what_is_smaller_than_the_least_size_is_no_place() -> None:
    lines = (
        "a = f32[100] parameter(0)",
        "z = f32[] parameter(1)",
        "n = f32[0] slice(a), slice={[0:0]}",
        "b = f32[50] slice(a), slice={[0:50]}",
        "c = f32[99] pad(b, z), padding=0_49",
        "d = f32[1] slice(c), slice={[0:1]}",
    )
    sizes = {
        least: sorted(place.size for place in places_of(*lines, least=least).all)
        for least in (0, 4, 5, 201, 397)
    }
    assert sizes[0] == sizes[4] == [4, 4, 200, 396, 400]  # never what has no size
    assert sizes[5] == [200, 396, 400]
    assert sizes[201] == [396, 400]
    assert sizes[397] == [400]
