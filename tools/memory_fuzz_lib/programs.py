"""Random programs: the n-th of a seed is always the same."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from memory_fuzz_lib import arithmetic, collectives, movement, placement, special
from memory_fuzz_lib.control_flow import CALLS
from memory_fuzz_lib.writer import (
    ALL,
    Program,
    Scope,
    Theme,
    Value,
    names,
    tuple_text,
)

_SHAPES: tuple[tuple[tuple[int, ...], ...], ...] = (
    ((256, 512), (1024, 256), (256, 256), (512,)),
    ((64, 128), (128, 64), (8, 64, 128), (128,)),
    ((3, 5), (7,), (4, 4, 4), (5, 3)),
    ((8, 16, 32), (16, 32), (32, 8), (2, 3, 16, 16)),
    ((1000,), (17, 33), (33, 17), (1, 64), (0, 5)),
    ((64, 64),),
    ((256, 128), (128, 256), (128, 128)),
    ((16, 16, 16), (16, 16), (256, 16)),
    ((4096,), (64, 64), (1024, 4)),
)
_MOST_RESULTS = 8
_DEEPEST = 2


class RandomProgram(NamedTuple):
    """A module, and what occurs in it."""

    text: str
    features: frozenset[str]


def program(seed: int, number: int) -> RandomProgram:
    """The program of a number, the same each time."""
    dice = Random(f"{seed}:{number}")
    made = Program(dice, _theme(dice))
    entry = Scope(made)
    parameters = _parameters(entry)
    fill(entry, made.theme.steps)
    results = _results(entry)
    shape, root = tuple_text(results), f"tuple({names(results)})"
    is_tuple = len(results) != 1 or entry.chance(0.5)
    if not is_tuple:
        (result,) = results
        shape, root = result.shape, f"copy({result.name})"
    aliases = _aliases(entry, parameters, results, is_tuple=is_tuple)
    entry.close("main", shape, root)
    theme = made.theme
    head = f"HloModule m{number}{aliases}, replica_count={theme.replicas}"
    head += f", num_partitions={theme.partitions}\n\n"
    if theme.devices > 1:
        made.features.add("several devices")
    text = head + "\n\n".join(made.computations) + "\n"
    return RandomProgram(text, frozenset(made.features))


def _theme(dice: Random) -> Theme:
    shapes = dice.choice(_SHAPES)
    if dice.random() < 0.3:
        shapes += dice.choice(_SHAPES)
    types = dice.choice((("f32",), ("f32", "bf16"), ("f32", dice.choice(ALL)), dice.sample(ALL, 3)))
    replicas, partitions = dice.choice(((1, 1), (1, 1), (1, 1), (1, 4), (2, 1), (1, 2)))
    return Theme(
        shapes=shapes,
        types=tuple(types),
        replicas=replicas,
        partitions=partitions,
        loops=dice.choice((0.0, 0.06, 0.15, 0.25)),
        placement=dice.choice((0.0, 0.0, 0.05)),
        arithmetic=dice.choice((0.3, 0.5, 0.7)),
        steps=dice.choice((6, 12, 20, 30, 30, 60)),
    )


def fill(scope: Scope, steps: int) -> None:
    """Take some steps; those that find nothing that fits write nothing."""
    theme = scope.program.theme
    for _ in range(steps):
        if scope.depth < _DEEPEST and scope.chance(theme.loops):
            scope.pick(CALLS)(scope, fill)
        elif theme.devices > 1 and scope.chance(0.2):
            scope.pick(collectives.STEPS)(scope)
            scope.program.features.add("collectives")
        elif scope.chance(theme.placement):
            scope.pick(placement.STEPS)(scope)
        elif scope.chance(0.08):
            scope.pick(special.STEPS)(scope)
        elif scope.chance(theme.arithmetic):
            scope.pick(arithmetic.STEPS)(scope)
        else:
            scope.pick(movement.STEPS)(scope)


# -- parameters and results of the entry -----------------------------------------------------------

Part = tuple[Value, str]
"""A parameter or a part of one, and its place as input_output_alias has it."""


def _parameters(entry: Scope) -> list[Part]:
    parts: list[Part] = []
    theme = entry.program.theme
    number = 0
    for number in range(entry.pick((1, 2, 3, 5))):
        value = Value("", entry.pick(theme.types), entry.pick(theme.shapes))
        if entry.chance(0.85):
            made = entry.add(*value[1:], f"parameter({number})")
            parts.append((made, f"{number}, {{}}"))
            continue
        values = [value, Value("", entry.pick(theme.types), entry.pick(theme.shapes))]
        whole = entry.write("tuple", tuple_text(values), f"parameter({number})")
        made_parts = entry.elements("part", whole, values)
        parts += [(part, f"{number}, {{{i}}}") for i, part in enumerate(made_parts)]
        entry.program.features.add("tuple parameters")
    entry.add("s32", (), f"parameter({number + 1})")
    return parts


def _results(entry: Scope) -> list[Value]:
    """Results that nothing reads, and some others: parameters, or one twice."""
    results = entry.unread()[-_MOST_RESULTS:]
    if not results or entry.chance(0.3):
        results.append(entry.array())
    if entry.chance(0.2):
        results.append(entry.values[0])
        entry.program.features.add("parameters returned")
    if entry.chance(0.15):
        results.append(entry.pick(results))
        entry.program.features.add("results twice")
    if entry.chance(0.03):
        results = []
    return results


def _aliases(
    entry: Scope, parameters: Sequence[Part], results: Sequence[Value], *, is_tuple: bool
) -> str:
    """The header's donations: of results that have the shape of a parameter, some."""
    if not entry.chance(0.4):
        return ""
    taken: set[str] = set()
    found = []
    for number, result in enumerate(results):
        for parameter, place in parameters:
            if place not in taken and parameter[1:] == result[1:] and entry.chance(0.6):
                taken.add(place)
                index = number if is_tuple else ""
                found.append(f"{{{index}}}: ({place}, {entry.pick(('may', 'must'))}-alias)")
                break
    if not found:
        return ""
    entry.program.features.add("donations")
    return f", input_output_alias={{ {', '.join(found)} }}"
