"""What two runs did to the outside world, compared: outfeeds, custom calls with side effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hloopt.equivalence.measures import Pair, arrays_with_paths
from hloopt.equivalence.signature import leaf_text, place_text
from hloopt.interpreter.effects import Effect, RunRecord, has_effect
from hloopt.interpreter.values import type_text, value_text
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.ordering import depends_on


class OtherEffects(NamedTuple):
    """Effects of one device that are not the same."""

    device: int
    reason: str


def effect_pairs(left: RunRecord, right: RunRecord) -> Iterator[Pair | OtherEffects]:
    """The data of all effects to be compared, and what is other about them beside that."""
    for device, effects in left.effects.items():
        yield from _compare(device, effects, right.effects.get(device, []))


def _compare(
    device: int, left: Sequence[Effect], right: Sequence[Effect]
) -> Iterator[Pair | OtherEffects]:
    """The same of one device.

    Effects of one kind are compared in their order; those of several only where the first program
    puts them in one.
    """
    counts = Counter(e.kind for e in left), Counter(e.kind for e in right)
    for kind in dict.fromkeys(e.kind for e in (*left, *right)):
        mine = [effect for effect in left if effect.kind == kind]
        others = [effect for effect in right if effect.kind == kind]
        if len(mine) != len(others):
            example = (mine or others)[0].instruction
            yield OtherEffects(
                device,
                f"{_what(kind, example)} ran {_times(len(mine))}, it runs {_times(len(others))}",
            )
            continue
        for number, (before, after) in enumerate(zip(mine, others, strict=True)):
            yield from _data(device, number, before, after)
    if counts[0] == counts[1]:
        swapped = _swapped(left, right)
        if swapped is not None:
            first, second = swapped
            yield OtherEffects(
                device,
                f"{_what(second.kind, second.instruction)} ran after "
                f"{_what(first.kind, first.instruction)}, it runs before",
            )


def _what(kind: str, instruction: Instruction) -> str:
    module = instruction.parent.module
    name = kind if kind == "outfeed" else f"custom call {kind}"
    return f"{name} %{instruction.name}{place_text(module, instruction)}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times" if count else "never"


def _data(device: int, number: int, before: Effect, after: Effect) -> Iterator[Pair | OtherEffects]:
    texts = [value_text(effect.operands) for effect in (before, after)]
    if texts[0] != texts[1]:
        what = _what(before.kind, before.instruction)
        yield OtherEffects(device, f"{what} got {texts[0]}, it gets {texts[1]}")
        return
    arrays = zip(arrays_with_paths(before.operands), arrays_with_paths(after.operands), strict=True)
    for (path, mine), (_, other) in arrays:
        name = f"{before.kind} %{before.instruction.name}{leaf_text(path)}"
        leaf, offset = (-1, number, *path), (0,) * mine.ndim
        yield Pair(leaf, name, type_text(mine), device, mine, other, offset)


def _swapped(left: Sequence[Effect], right: Sequence[Effect]) -> tuple[Effect, Effect] | None:
    """Two effects that the first program has in this order, and the second in the other one."""
    positions = {key: position for position, key in enumerate(_numbered(right))}
    places = [positions[key] for key in _numbered(left)][:_MOST_ORDERED]
    for j, second in enumerate(places):
        for i, first in enumerate(places[:j]):
            before, after = left[i].instruction, left[j].instruction
            if first > second and before.parent is after.parent and depends_on(after, before):
                return left[i], left[j]
    return None


_MOST_ORDERED = 200
"""Effects whose order is compared."""


def _numbered(effects: Sequence[Effect]) -> Iterator[tuple[str, int]]:
    """The kind of each, and the how manieth of its kind it is."""
    seen: Counter[str] = Counter()
    for effect in effects:
        seen[effect.kind] += 1
        yield effect.kind, seen[effect.kind]


def first_effect(module: Module) -> Instruction | None:
    """An instruction of a module that has an effect."""
    return next((i for i in module.instructions() if has_effect(i)), None)
