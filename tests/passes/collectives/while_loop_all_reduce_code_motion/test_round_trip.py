"""Rearrangements that give a value back as it was."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from hloopt.passes.collectives.while_loop_all_reduce_code_motion.round_trip import gives_back
from hloopt.text import parse_module


def is_given_back(first: str, *steps: str) -> bool:
    """Whether steps, each on the result `@` of the one before, give back `#`, the first."""
    lines = [f"x0 = {first} parameter(0)", "i = s32[] parameter(1)", "k = s32[] parameter(2)"]
    for number, step in enumerate(steps):
        operands = step.replace("@", f"x{number}").replace("#", "x0")
        lines.append(f"x{number + 1} = {operands}")
    text = "HloModule m\nENTRY e {\n" + "\n".join(lines) + f"\nROOT t = tuple(x{len(steps)})\n}}\n"
    named = {i.name: i for i in parse_module(text).entry.instructions}
    return gives_back(named[f"x{number}"] for number in range(1, len(steps) + 1))


TURN = "f32[3,2] transpose(@), dimensions={1,0}"
TURN_BACK = "f32[2,3] transpose(@), dimensions={1,0}"
FLAT = "f32[6] reshape(@)"
SQUARE = "f32[2,3] reshape(@)"
TAKE = "f32[1,3] dynamic-slice(@, i, k), dynamic_slice_sizes={1,3}"
PUT = "f32[2,3] dynamic-update-slice(#, @, i, k)"
ADD = "f32[2,3] add(@, @)"


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([], True),
        ([ADD], True),  # which changes no positions
        ([TURN], False),
        ([TURN, TURN_BACK], True),
        ([TURN, "f32[3,2] add(@, @)", TURN_BACK], True),
        ([TURN, TURN_BACK, TURN], False),
        ([TURN, TURN_BACK, TURN, TURN_BACK], True),
        (["f32[2,3] transpose(@), dimensions={0,1}"], True),
        ([FLAT], False),
        ([FLAT, SQUARE], True),
        ([FLAT, "f32[3,2] reshape(@)"], False),
        ([FLAT, "f32[3,2] reshape(@)", SQUARE], True),
        ([FLAT, "f32[3,2] reshape(@)", TURN_BACK], False),
        ([TURN, "f32[6] reshape(@)", SQUARE], False),
        ([TURN, "f32[6] reshape(@)", "f32[3,2] reshape(@)", TURN_BACK], True),
        ([FLAT, "f32[2,3] bitcast(@)"], False),
        (["f32[6] bitcast(@)", "f32[2,3] bitcast(@)"], True),
        (["f32[3,2]{0,1} bitcast(@)", "f32[2,3] bitcast(@)"], True),
        (["f32[2,3]{0,1} bitcast(@)"], False),
        (["f32[2,3] bitcast(@)"], True),
        ([TAKE], False),
        ([TAKE, "f32[1,3] negate(@)", PUT], True),
        ([TAKE, "f32[3] reshape(@)", "f32[1,3] reshape(@)", PUT], True),
        ([TAKE, "f32[3,1] reshape(@)", "f32[1,3] transpose(@), dimensions={1,0}", PUT], False),
        ([PUT], False),
        ([ADD, PUT], False),
        ([TURN, "f32[2,3] dynamic-update-slice(#, #, i, k)"], False),
    ],
)
def test_steps_that_give_a_value_back(steps: list[str], expected: bool) -> None:
    assert is_given_back("f32[2,3]", *steps) is expected


ORDERS = list(itertools.permutations(range(3)))


def transposes(orders: list[tuple[int, ...]]) -> tuple[list[str], np.ndarray]:
    """Transposes one after the other, and where each element of f32[2,3,4] ends."""
    places = np.arange(24).reshape(2, 3, 4)
    steps = []
    for order in orders:
        places = places.transpose(order)
        sizes, dimensions = (",".join(map(str, numbers)) for numbers in (places.shape, order))
        steps.append(f"f32[{sizes}] transpose(@), dimensions={{{dimensions}}}")
    return steps, places


@pytest.mark.parametrize("first", ORDERS)
def test_transposes_give_back_what_they_do_together(first: tuple[int, ...]) -> None:
    for second in ORDERS:
        steps, places = transposes([first, second])
        is_same = places.shape == (2, 3, 4) and (places.ravel() == np.arange(24)).all()
        assert is_given_back("f32[2,3,4]", *steps) is bool(is_same)


def test_what_is_given_back_is_in_its_place() -> None:
    dice = random.Random(7)
    found = 0
    for _ in range(150):
        places = np.arange(24).reshape(2, 3, 4)
        steps = []
        for _ in range(dice.randint(1, 4)):
            if dice.random() < 0.5:
                order = tuple(dice.sample(range(places.ndim), places.ndim))
                places = places.transpose(order)
                opcode = "transpose(@), dimensions={" + ",".join(map(str, order)) + "}"
            else:
                places = places.reshape(dice.choice([(2, 3, 4), (4, 3, 2), (6, 4), (24,)]))
                opcode = "reshape(@)"
            steps.append(f"f32[{','.join(map(str, places.shape))}] {opcode}")
        if is_given_back("f32[2,3,4]", *steps):
            found += 1
            assert places.shape == (2, 3, 4)
            assert (places.ravel() == np.arange(24)).all()
    assert found > 3
