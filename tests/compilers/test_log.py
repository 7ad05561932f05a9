"""The log of a compile: passes and the pipelines that have them."""

from __future__ import annotations

import pytest

from hloopt.compilers.log import last_pass, passes_of

_RUNS = "Running HLO pass pipeline on module m: "
_LINES = (
    f"{_RUNS}outer part",
    "  HLO pass inner part",
    f"{_RUNS}inner part",
    "    HLO pass dce",
    "HLO pass: dce time: 3 us",
    "HLO pass: inner part time: 9 us",
    "  HLO pass cse",
    "HLO pass: cse time: 3 us",
    f"{_RUNS}next",
    "  HLO pass dce",
)


def log(lines: tuple[str, ...], thread: int = 7) -> list[str]:
    return [f"I1127 15:43:57.5 {thread} hlo_pass_pipeline.cc:1] {line}" for line in lines]


def test_a_pass_behind_a_nested_pipeline_is_of_the_outer_one() -> None:
    assert passes_of(log(_LINES)) == {
        **{"outer part": {"inner part", "cse"}, "inner part": {"dce"}, "next": {"dce"}},
        **{"dce": set(), "cse": set()},
    }


@pytest.mark.parametrize("step", [1, 3])
def test_threads_do_not_mix(step: int) -> None:
    first, second = log(_LINES), log((f"{_RUNS}other", "  HLO pass algsimp"), 8)
    parts = passes_of([*first[:step], second[0], *first[step:], second[1]])
    assert parts["other"] == {"algsimp"}
    assert parts["outer part"] == {"inner part", "cse"}


def test_the_last_pass() -> None:
    assert last_pass(log(_LINES[:-2])) == "cse"
    assert last_pass(log(_LINES[:1])) is None
    assert passes_of(log(_LINES[1:2])) == {}  # of a log that lost its begin
