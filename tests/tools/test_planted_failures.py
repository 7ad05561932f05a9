"""The planted failures that reducing is measured with are as they are written down."""

from __future__ import annotations

from collections import Counter

import pytest

import planted_failures
from failures_lib.case import PlantedFailure
from failures_lib.cases import FAILURES
from failures_lib.showing import show
from hloopt.text import parse_module

_SAMPLE = (
    "a row that a loop takes out of an array",
    "a pair of transposes in the fifth round",
    "a trip less",
    "the double of a tangent in the third round",
    "a gathered value after its use",
    "a loop that reads from outside",
    "a product written to and fro",
    "a copy of a called sine in the seventh round",
    "what is left of a pair of transposes in the sixth round",
    "a loop in a loop that both send on",
)
"""Cases whose inputs are our own and small."""


def _quick(case: PlantedFailure) -> PlantedFailure:
    return case._replace(seconds=0.5)


@pytest.mark.parametrize("case", FAILURES, ids=lambda c: c.name)
def test_the_smallest_module_shows_the_failure(case: PlantedFailure) -> None:
    shown = show(_quick(case), case.smallest)
    assert shown is not None
    assert shown.signature == case.signature
    assert shown.culprit.pass_name == case.culprit.pass_name
    assert show(_quick(case), case.smallest, 0) is None


@pytest.mark.parametrize("name", _SAMPLE)
def test_a_case_is_as_it_is_written_down(name: str) -> None:
    (case,) = (c for c in FAILURES if c.name == name)
    assert list(planted_failures.problems(_quick(case), case.text())) == []


def test_a_case_that_is_written_down_wrongly_is_told() -> None:
    case = next(c for c in FAILURES if c.name == _SAMPLE[1])
    later = case.culprit._replace(limit=case.culprit.limit + 1)
    wrong = case._replace(instructions=1, signature="ValueError: another", culprit=later)
    told = "\n".join(planted_failures.problems(wrong, case.text()))
    for part in (
        f"{case.instructions} instructions, not 1",
        "another failure: ValueError: dimension",
        "another culprit: Culprit(",
        f"shown with {case.culprit.limit} applications, too",
        "the smallest module shows ValueError",
    ):
        assert part in told


def test_they_are_as_many_and_as_manifold_as_the_bar_asks_for() -> None:
    assert len({c.name for c in FAILURES}) == 40
    assert set(Counter(c.kind for c in FAILURES).values()) == {8}
    assert sum(c.two_computations for c in FAILURES) >= 15
    assert sum(bool(c.needs) for c in FAILURES) >= 8
    assert min(c.instructions for c in FAILURES) >= 200
    assert max(c.instructions for c in FAILURES) == 31855


@pytest.mark.parametrize("case", FAILURES, ids=lambda c: c.name)
def test_what_takes_two_computations_has_them(case: PlantedFailure) -> None:
    module = parse_module(case.smallest)
    assert not case.two_computations or len(module.computations) > 1
    assert module.instruction_count() < 20
