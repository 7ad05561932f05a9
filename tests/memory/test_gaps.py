"""The time when nothing touches what is kept in memory."""

from __future__ import annotations

from tests.memory.modules import LOOP_CONDITION, module_text

from hloopt.memory.advice.gaps import Gap, Places
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.text import parse_module


def gap(name: str, at: str, *lines: str, before: str = "", header: str = "") -> Gap | None:
    """The gap of the place that holds what `name` defines, around instruction `at`."""
    text = module_text(*lines, before=before, header=f"is_scheduled=true{header}")
    analysis = MemoryAnalysis.of(parse_module(text))
    places = Places(analysis, 0)
    times = {i.name: time for time, i in enumerate(places.schedule.steps)}
    value = next(v for v in analysis.flow.values() if analysis.name(v) == name)
    return places.gap_at(places.of_value[value], times[at])


WAITING = (
    "a = f32[100] parameter(0)",
    "b = f32[200] concatenate(a, a), dimensions={0}",
    "c = f32[100] reverse(a), dimensions={0}",
    "d = f32[100] reverse(c), dimensions={0}",
    "e = f32[300] concatenate(b, d), dimensions={0}",
    "f = f32[1] slice(e), slice={[0:1]}",
)


def test_a_temporary_waits_between_its_uses() -> None:
    found = gap("b", "c", *WAITING)
    assert found is not None
    assert (found.before, found.after) == (1, 4)
    assert gap("b", "b", *WAITING) is None  # it is written
    assert gap("b", "e", *WAITING) is None  # it is read
    assert gap("b", "f", *WAITING) is None  # it is gone


def test_a_parameter_waits_before_its_first_use_and_after_its_last() -> None:
    lines = (
        "p = f32[4] parameter(0)",
        "a = f32[4] parameter(1)",
        "b = f32[4] reverse(a), dimensions={0}",
        "c = f32[4] add(b, p)",
        "d = f32[4] reverse(c), dimensions={0}",
    )
    first = gap("p", "b", *lines)
    assert first is not None
    assert (first.before, first.after) == (-1, 3)
    last = gap("a", "c", *lines)
    assert last is not None
    assert (last.before, last.after) == (2, 5)


def test_an_output_is_not_kept_before_it_is_written() -> None:
    lines = (
        "a = f32[4] parameter(0)",
        "b = f32[8] concatenate(a, a), dimensions={0}",
        "c = f32[16] concatenate(b, b), dimensions={0}",
    )
    assert gap("c", "b", *lines) is None


def test_an_asynchronous_operand_is_read_until_the_done() -> None:
    lines = (
        "a = f32[100] parameter(0)",
        "b = f32[200] concatenate(a, a), dimensions={0}",
        "s = (f32[200], f32[200]) all-gather-start(b), replica_groups={{0}}, dimensions={0}",
        "c = f32[100] reverse(a), dimensions={0}",
        "g = f32[200] all-gather-done(s)",
        "d = f32[100] reverse(c), dimensions={0}",
        "e = f32[500] concatenate(b, g, d), dimensions={0}",
        "f = f32[1] slice(e), slice={[0:1]}",
    )
    assert gap("b", "c", *lines) is None
    assert gap("s{1}", "c", *lines) is None  # it is written
    waiting = gap("b", "d", *lines)
    assert waiting is not None
    assert (waiting.before, waiting.after) == (4, 6)


BODY = """
body { p = (s32[], f32[100]) parameter(0)
  i = s32[] get-tuple-element(p), index=0
  x = f32[100] get-tuple-element(p), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  w = f32[100] reverse(x), dimensions={0}
  v = f32[300] concatenate(w, w, w), dimensions={0}
  z = f32[100] slice(v), slice={[0:100]}
  ROOT t = (s32[], f32[100]) tuple(j, z) }
"""
LOOP = (
    "a = f32[100] parameter(0)",
    "b = f32[200] concatenate(a, a), dimensions={0}",
    "y = f32[100] copy(a)",
    "k = s32[] constant(0)",
    "t = (s32[], f32[100]) tuple(k, y)",
    "l = (s32[], f32[100]) while(t), condition=cond, body=body",
    "r = f32[100] get-tuple-element(l), index=1",
    "e = f32[300] concatenate(b, r), dimensions={0}",
    "f = f32[1] slice(e), slice={[0:1]}",
)


def test_what_a_loop_does_not_touch_waits_for_all_of_it() -> None:
    found = gap("b", "v", *LOOP, before=LOOP_CONDITION + BODY)
    assert found is not None
    assert found.before == 1


def test_the_state_of_a_loop_does_not_wait_within_it() -> None:
    assert gap("y", "v", *LOOP, before=LOOP_CONDITION + BODY) is None
    assert gap("y", "z", *LOOP, before=LOOP_CONDITION + BODY) is None


def test_a_copy_stands_before_the_call_that_needs_it() -> None:
    text = module_text(*LOOP, before=LOOP_CONDITION + BODY)
    places = Places(MemoryAnalysis.of(parse_module(text)), 0)
    steps = places.schedule.steps
    entry = {i.name: time for time, i in enumerate(steps) if i.parent.is_entry}
    inner = next(time for time, i in enumerate(steps) if i.name == "v")
    assert places.position_in(steps[entry["b"]], entry["e"]) == entry["e"]
    assert places.position_in(steps[entry["b"]], inner) == entry["k"] + 2  # behind the tuple
    assert places.position_in(steps[inner], entry["e"]) is None
