"""Donations in full: which argument to which output, and what that saves."""

from __future__ import annotations

import pytest
from tests.memory.modules import module_text

from hloopt.memory.advice import Advice, advise
from hloopt.memory.advice import donation as donation_advice
from hloopt.memory.advice.model import Effect
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.text import parse_module


def advice_for(*lines: str, before: str = "", header: str = "") -> Advice:
    text = module_text(*lines, before=before, header=f"is_scheduled=true{header}")
    analysis = MemoryAnalysis.of(parse_module(text))
    return advise(analysis, analysis.report(), None)


def donated(advice: Advice) -> list[tuple[int, tuple[int, ...], tuple[int, ...], int | None]]:
    return [(*d.argument, d.output, d.saved) for d in advice.donations]


DONATED = (
    "a = f32[100] parameter(0)",
    "b = f32[100] parameter(1)",
    "c = f32[50] parameter(2)",
    "p = (f32[100], f32[0], f32[50]) parameter(3)",
    "q = f32[100] get-tuple-element(p), index=0",
    "k = f32[50] get-tuple-element(p), index=2",
    "m = f32[100] add(a, q)",
    "n = f32[50] reverse(k), dimensions={0}",
    "o = f32[50] add(n, c)",
    "u = f32[100] negate(m)",
    "v = f32[50] slice(b), slice={[0:50]}",
    "t = (f32[100], f32[50], f32[50], f32[100], f32[50]) tuple(u, o, v, u, k)",
)


def test_arguments_are_donated_to_outputs_of_their_shape_the_largest_first() -> None:
    """`k` is a result itself, `b` is read too late, and nothing is left for `v`."""
    advice = advice_for(*DONATED)
    assert donated(advice) == [(0, (), (0,), 400), (2, (), (1,), 200)]
    assert [d.shape for d in advice.donations] == ["f32[100]{0}", "f32[50]{0}"]
    assert advice.donated_need == Effect(2664, 2064)
    assert advice.donated_peak == Effect(2464, 1864)


def test_an_argument_is_named_by_its_op_name() -> None:
    lines = ("a = f32[8] parameter(0)", "b = f32[8] negate(a)")
    (donation,) = advice_for(*lines).donations
    assert donation.name == "a"
    named = (f'{lines[0]}, metadata={{op_name="params"}}', lines[1])
    (donation,) = advice_for(*named).donations
    assert donation.name == "params"


def test_a_part_of_an_argument_is_donated_by_its_index() -> None:
    advice = advice_for(*DONATED, header=", buffer_donor={ (0, {}), (2, {}) }")
    assert donated(advice) == [(3, (0,), (0,), 400)]
    assert [d.name for d in advice.donations] == ["p{0}"]


def test_donations_of_one_size_are_in_the_order_of_arguments() -> None:
    advice = advice_for(
        "a = f32[100] parameter(0)",
        "b = s32[100] parameter(1)",
        "c = f32[200] parameter(2)",
        "m = s32[100] negate(b)",
        "n = f32[100] negate(a)",
        "o = f32[200] negate(c)",
        "t = (s32[100], f32[100], f32[200]) tuple(m, n, o)",
    )
    assert donated(advice) == [(2, (), (2,), 800), (0, (), (1,), 400), (1, (), (0,), 400)]


ROOM = (
    "k = f32[] parameter(2)",
    "a = f32[100] parameter(0)",
    "b = f32[100] parameter(1)",
    "x = f32[100] reverse(b), dimensions={0}",
    "y = f32[50] slice(x), slice={[0:50]}",
    "w = f32[100] pad(y, k), padding=0_50",
)
"""`x` and then `w` lie where the result will."""


def test_a_donation_that_saves_nothing_is_not_suggested() -> None:
    """`x` would lie elsewhere: the arguments are still read where it lies in the result."""
    advice = advice_for(*ROOM, "m = f32[100] add(a, w)")
    assert donated(advice) == []
    assert advice.donated_need == advice.donated_peak == Effect(0, 0)


def test_of_several_arguments_the_one_that_saves_most_is_donated() -> None:
    advice = advice_for(
        *ROOM,
        "v = f32[100] reverse(w), dimensions={0}",
        "m = f32[50] slice(a), slice={[0:50]}",
        "n = f32[100] pad(m, k), padding=0_50",
        "o = f32[100] add(n, v)",
        "t = (f32[100]) tuple(o)",
    )
    assert donated(advice) == [(1, (), (0,), 400)]
    assert advice.donated_need == Effect(1860, 1460)


def test_the_first_of_several_is_taken_where_trials_are_too_much_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(donation_advice, "_WORK", 0)
    assert donated(advice_for(*DONATED)) == [(0, (), (0,), None), (2, (), (1,), None)]


def test_an_argument_that_is_read_too_late_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(donation_advice, "_WORK", 0)
    advice = advice_for(*DONATED, header=", buffer_donor={ (0, {}), (3, {0}) }")
    assert donated(advice) == [(2, (), (1,), None)]  # `b` would fit but for that


def test_what_several_calls_compute_is_given_no_argument() -> None:
    advice = advice_for(
        "a = f32[100] parameter(0)",
        "b = f32[100] parameter(1)",
        "c = f32[100] call(a), to_apply=f",
        "d = f32[100] call(b), to_apply=f",
        "t = (f32[100], f32[100]) tuple(c, d)",
        before="f { x = f32[100] parameter(0)\n  ROOT r = f32[100] negate(x) }",
    )
    assert donated(advice) == []
