"""Moves of copies out of host memory beside those of XLA:GPU's compiler, on programs for it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.memory_space.legalization.programs import PASS, PROGRAMS
from tests.oracle.comparison import differences, without_leftovers

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module

pytestmark = [pytest.mark.oracle]

_COPY_LOST = "XLA loses the copy, and with it the layout that users were to see"
DIFFERENT = {
    "value and copy in the result": "XLA returns both in one layout; ours leaves the copy",
    "two copies up to the result": "XLA leaves a copy in host memory; ours moves the last one up",
    "a part of a parameter in host memory": "XLA looks at parameters that are arrays alone",
    "twice in a tuple": _COPY_LOST,
    "a loop that swaps parts of a tuple": _COPY_LOST,
    "through a call": _COPY_LOST,
    "into branches": _COPY_LOST,
    "in a called computation": _COPY_LOST,
    "out of a called computation": _COPY_LOST,
    "brought back as the result": _COPY_LOST,
    "a copy before a write": "XLA leaves the copy in host memory; ours moves it up",
    "copies in a loop": "XLA brings copies there and back of what has one layout; ours drops them",
    "a value written and brought back": "XLA no longer brings to the host what is brought back",
}
"""Programs of which ours makes something else, with the reason."""
NOT_TAKEN = {
    "a tuple in a tuple": "compiler process ended",
    "a bitcast that flattens": "Only handling bitcasts with majormost dimension of size 1",
    "a bitcast to another type": "Only handling bitcasts which change the layout",
    "a bitcast that permutes dimensions": "Only handling bitcasts which change the layout",
    "a bitcast that adds the last dimension": "Only handling bitcasts with majormost dimension",
    "a bitcast that adds two dimensions": "Bitcast changes dimensionality in an unsupported way",
    "a reshape that adds a dimension": "mismatched minor-to-major size and dimension size",
    "a reshape that flattens": "mismatched minor-to-major size and dimension size",
    "a write from the device": "Annotation not found",
    "a control dependency": "cannot remove instruction",
}
"""Programs of which XLA makes no module that it takes itself, with its words."""


@pytest.fixture(scope="module")
def answers(compiler: Any) -> dict[str, Any]:
    """What the compiler says of each program."""
    results = compiler.compile_many(
        list(PROGRAMS.items()), target="h100_sxm", only=[PASS], passes=f"^{PASS}$", until="memory",
        lhs=False,
    )  # fmt: skip
    return dict(zip(PROGRAMS, results, strict=True))


def test_the_result_is_that_of_xla(answers: dict[str, Any]) -> None:
    different, changed = set(), 0
    for name in PROGRAMS.keys() - NOT_TAKEN.keys():
        (step,) = answers[name].steps
        ours, theirs = parse_module(step.before), parse_module(step.after or step.before)
        changed += create_pass(PASS).run(ours, PassContext())
        for module in (ours, theirs):
            without_leftovers(module)
        if differences(ours, theirs):
            different.add(name)
    assert different == DIFFERENT.keys()
    assert changed > 40


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_xla_does_not_take_others(name: str, answers: dict[str, Any]) -> None:
    assert NOT_TAKEN[name] in answers[name].error
    assert create_pass(PASS).run(parse_module(PROGRAMS[name]), PassContext()) == (
        name != "a control dependency"
    )
