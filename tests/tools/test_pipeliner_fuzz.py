"""The sweep over pipelined loops tells equal results from others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hloopt.compilers.comparing import compare_with
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module
from pipeliner_fuzz_lib.programs import program
from pipeliner_fuzz_lib.subject import BACKWARD, FORWARD, WRONG, Programs
from sweep_lib.findings import Progress

OPCODES = {0: "all-reduce", 1: "all-gather", 2: "reduce-scatter"}


def pipelined(text: str, number: int) -> str:
    """The text behind the pipeliner of an instance."""
    module = parse_module(text)
    options = {
        "pipelining_direction": "backward" if number == 1 else "forward",
        "should_process": (OPCODES[number],),
        "trip_analysis": "xla",
        "unique_channel_id": True,
    }
    create_pass("collective-pipeliner", options).run(module, PassContext())
    return print_module(module)


def judged(number: int, steps: list[Any]) -> Progress:
    programs = Programs(0, Path(), "")
    programs._answers[number] = SimpleNamespace(steps=steps)
    return programs.examine(number, set())


def steps_of(number: int) -> list[Any]:
    """The answer of a compiler that pipelines as we do."""
    text, steps = program(0, number), []
    for place, name in enumerate((FORWARD, BACKWARD, FORWARD)):
        after = pipelined(text, place)
        steps.append(SimpleNamespace(pipeline="p", name=name, before=text, after=after))
        text = after
    return steps


def moving_programs() -> list[int]:
    return [
        number for number in range(60) if steps_of(number)[0].before != steps_of(number)[2].after
    ]


def test_programs_are_valid_and_some_of_them_are_pipelined() -> None:
    for number in range(40):
        assert not verify_module(parse_module(program(0, number)))
    assert program(0, 1) == program(0, 1) != program(1, 1)
    assert len(moving_programs()) > 5


def test_equal_results_are_equal() -> None:
    for number in moving_programs()[:5]:
        found = judged(number, steps_of(number))
        assert found.outcomes["equal"] == found.outcomes["pipelined"] == 1
        assert found.outcomes["loops"]
        assert not found.findings


def test_a_loop_that_only_one_of_them_pipelines_is_found() -> None:
    number = moving_programs()[0]
    steps = steps_of(number)
    for step in steps:
        step.before = step.after = program(0, number)
    found = judged(number, steps)
    assert found.outcomes["equal"] == 0
    assert "other loops" in found.findings[0].problem.kind


def wrong_steps() -> tuple[int, list[Any]]:
    """A program, and what a compiler would answer whose pipelining of all-reduces is wrong."""
    for number in moving_programs():
        steps = steps_of(number)
        if steps[0].before != steps[0].after:
            wrong = steps[0].after.replace("f32[] add(", "f32[] multiply(")
            if judged(number, [replaced(steps[0], wrong), *steps[1:]]).outcomes["different"]:
                return number, [replaced(steps[0], wrong), *steps[1:]]
    raise AssertionError("no program shows it")


def replaced(step: Any, after: str) -> Any:
    return SimpleNamespace(**{**vars(step), "after": after})


def test_a_result_of_xla_that_is_wrong_is_counted() -> None:
    found = judged(*wrong_steps())
    assert found.outcomes[WRONG] == found.outcomes["equal"] == 1


def test_a_result_of_ours_that_computes_something_else_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    number, steps = wrong_steps()

    def turned(*arguments: Any) -> Any:
        found = compare_with(*arguments)
        return replace(found, ours=found.theirs, theirs=found.ours)

    monkeypatch.setattr("pipeliner_fuzz_lib.subject.compare_with", turned)
    found = judged(number, steps)
    assert found.outcomes["equal"] == found.outcomes[WRONG] == 0
    assert "different" in found.findings[0].problem.kind


@pytest.mark.parametrize("kept", [0, 2])
def test_an_answer_without_all_instances_is_lost(kept: int) -> None:
    found = judged(0, steps_of(0)[:kept])
    assert found.outcomes["lost"] == 1
    assert not found.outcomes["programs"]
