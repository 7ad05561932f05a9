"""Estimates of what changes save: by the waiting at stake, and by what changes saved before."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hloopt.ir import Module
from hloopt.passes.overlap.decisions import Decision, Draft
from hloopt.passes.overlap.estimates import Estimates
from hloopt.passes.overlap.judging import Judged
from hloopt.text import parse_module


def judged(module: Module, seconds: float, exposed: float, waits: Mapping[str, float]) -> Judged:
    return Judged(
        seconds=seconds,
        smooth_seconds=seconds,
        scheduler_seconds=seconds,
        exposed=exposed,
        allocated=100,
        waits=waits,
        decisions=(),
        make=lambda: Draft(module),
        finish=lambda draft: draft.module,
    )


def place(**waits: float) -> Judged:
    """A step of a second that waits for some collectives."""
    module = parse_module("HloModule m\n\nENTRY e { ROOT p = f32[] parameter(0) }\n")
    exposed = sum(waits.values())
    return judged(module, 1.0, exposed, waits)


def split(name: str, parts: int = 2) -> tuple[Decision, ...]:
    options = (("names", (name,)), ("parts", parts))
    return (Decision("split", "collective-splitter", options, f"split {name}"),)


def combine(threshold: int) -> tuple[Decision, ...]:
    options = (("combine_threshold_in_bytes", threshold),)
    return (Decision("combine", "gpu-all-gather-combiner", options, "combine"),)


def order(estimates: Estimates, at: Judged, *changes: tuple[Decision, ...]) -> list[str]:
    return [decision.what for _, (decision,) in estimates.ranked(changes, at)]


def test_the_longer_a_collective_is_waited_for_the_more_a_change_promises() -> None:
    at = place(short=0.1, long=0.3)
    found = order(Estimates(), at, split("short"), split("other"), split("long"))
    assert found == ["split long", "split short", "split other"]


def test_a_change_that_names_no_collectives_has_all_waiting_at_stake() -> None:
    ranked = Estimates().ranked([combine(1)], place(one=0.1, two=0.3))
    assert ranked[0][0] == pytest.approx(0.2 * 0.4)


def test_a_change_that_was_tried_is_expected_to_save_the_same_again() -> None:
    estimates, at = Estimates(), place(short=0.1, long=0.3)
    estimates.learn(split("long"), at, -0.2)
    estimates.learn(split("short"), at, 0.05)
    assert estimates.ranked([split("long"), split("short")], at) == [
        (0.05, split("short")),
        (-0.2, split("long")),
    ]


def test_kinds_that_save_more_come_first_elsewhere() -> None:
    estimates, at = Estimates(), place(one=0.2, other=0.2)
    two, four = split("other"), split("other", 4)
    assert estimates.ranked([two, four], at)[0][1] == two
    estimates.learn(split("one"), at, 0.0)
    estimates.learn(split("one", 4), at, 0.2)
    assert estimates.ranked([two, four], at)[0][1] == four


def test_a_step_that_takes_no_time_has_nothing_at_stake() -> None:
    module = parse_module("HloModule m\n\nENTRY e { ROOT p = f32[] parameter(0) }\n")
    at = judged(module, 0.0, 0.0, {})
    assert [expected for expected, _ in Estimates().ranked([split("a"), combine(1)], at)] == [0, 0]
