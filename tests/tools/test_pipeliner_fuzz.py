"""The sweep over pipelined loops tells equal results from others."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module
from pipeliner_fuzz_lib.programs import program
from pipeliner_fuzz_lib.subject import BACKWARD, FORWARD, Programs
from sweep_lib.findings import Progress

OPCODES = {0: "all-reduce", 1: "all-gather", 2: "reduce-scatter"}


def pipelined(text: str, number: int) -> str:
    """The text behind the pipeliner of an instance."""
    module = parse_module(text)
    options = {
        "pipelining_direction": "backward" if number == 1 else "forward",
        "should_process": (OPCODES[number],),
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
        number for number in range(30) if steps_of(number)[0].before != steps_of(number)[2].after
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


def test_a_result_that_computes_something_else_is_found() -> None:
    found = []
    for number in moving_programs():
        steps = steps_of(number)
        if steps[0].before != steps[0].after:  # all-reduces move, and are other ones in the end
            steps[0].after = steps[0].after.replace("f32[] add(", "f32[] multiply(")
            found.append(judged(number, steps).outcomes["equal"])
    assert found
    assert 0 in found


@pytest.mark.parametrize("kept", [0, 2])
def test_an_answer_without_all_instances_is_lost(kept: int) -> None:
    found = judged(0, steps_of(0)[:kept])
    assert found.outcomes["lost"] == 1
    assert not found.outcomes["programs"]
