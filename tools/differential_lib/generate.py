"""Programs for all passes: the n-th program of a seed is always the same."""

from __future__ import annotations

import random

from differential_lib import (
    arrays,
    collectives,
    conditional_patterns,
    control_flow,
    local_patterns,
    patterns,
)
from differential_lib.writer import Program, Scope


def dice_of(seed: int, number: int, purpose: str) -> random.Random:
    """A source of chance for one program and one purpose."""
    return random.Random(f"{seed}:{number}:{purpose}")


def program_text(seed: int, number: int) -> str:
    """A program of 1 to 4 devices whose outputs hold all that it computes in the end."""
    dice = dice_of(seed, number, "program")
    program = Program(dice)
    entry = Scope(program, depth=0)
    vector, matrix = program.vector, program.matrix
    layout = "{1,0}" if dice.random() < 0.5 else ""
    entry.vectors = [entry.add(vector, f"parameter({index})") for index in (0, 1)]
    entry.matrices = [entry.add(matrix + layout, "parameter(2)")]
    entry.counters = [entry.integer(dice.choice((0, 1)))]
    fill(entry, dice.randint(2, 7))
    entry.finish_some(1.0)
    results = dict.fromkeys([*entry.vectors[-4:], *entry.vectors[:1]])
    arrays_ = dict.fromkeys(entry.matrices[-2:])
    shapes = [vector] * len(results) + [matrix] * len(arrays_)
    entry.close(
        "main",
        f"({', '.join(shapes)})",
        f"tuple({', '.join([*results, *arrays_])})",
        is_entry=True,
    )
    scheduled = ", is_scheduled=true" if program.is_scheduled else ""
    head = f"HloModule m{scheduled}{program.devices.header()}\n\n"
    return head + "\n\n".join(program.computations) + "\n"


def fill(scope: Scope, count: int) -> None:
    """Write `count` recipes, with dones of asynchronous operations among them."""
    for _ in range(count):
        _recipe(scope)
        scope.finish_some(0.4)


def _recipe(scope: Scope) -> None:
    chance = scope.dice.random()
    if chance < 0.05 and scope.depth < 2:
        scope.pick(conditional_patterns.RECIPES)(scope)
    elif chance < 0.25:
        scope.pick(control_flow.recipes(scope))(scope, fill)
    elif chance < 0.45 and scope.may_meet:
        scope.pick(collectives.RECIPES)(scope)
    elif chance < 0.65 and scope.may_meet:
        scope.pick(patterns.RECIPES)(scope)
    elif chance < 0.8:
        scope.pick(local_patterns.RECIPES)(scope)
    else:
        scope.pick(arrays.RECIPES)(scope)
