"""Comparison of the side effects of two runs: outfeeds and infeeds, transfers to and from the
host, custom calls with side effects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from hloopt.equivalence.measures import Pair, arrays_with_paths
from hloopt.equivalence.signature import leaf_text, place_text
from hloopt.interpreter.effects import Effect, RunRecord, has_effect
from hloopt.interpreter.values import arrays_of, type_text, value_text
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
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

    Effects of one kind are paired in their order, or by what they carry where that is the same
    only in another order. Whatever order results has to keep the one that the first program says.
    """
    positions = {id(effect): position for position, effect in enumerate(right)}
    places: list[tuple[int, Effect, Effect]] = []
    for kind in dict.fromkeys(e.kind for e in (*left, *right)):
        mine = [effect for effect in left if effect.kind == kind]
        others = [effect for effect in right if effect.kind == kind]
        if len(mine) != len(others):
            example = (mine or others)[0].instruction
            yield OtherEffects(
                device,
                f"{_what(kind, example)} ran {_times(len(mine))}, it runs {_times(len(others))}",
            )
            return
        for number, (before, after) in enumerate(zip(mine, _by_data(mine, others), strict=True)):
            yield from _data(device, number, before, after)
            places.append((positions[id(after)], before, after))
    order = {id(effect): position for position, effect in enumerate(left)}
    places.sort(key=lambda place: order[id(place[1])])
    swapped = _swapped(places)
    if swapped is not None:
        first, second = swapped
        yield OtherEffects(
            device,
            f"{_what(second.kind, second.instruction)} ran after "
            f"{_what(first.kind, first.instruction)}, it runs before",
        )


def _what(kind: str, instruction: Instruction) -> str:
    module = instruction.parent.module
    name = f"custom call {kind}" if instruction.opcode is Opcode.CUSTOM_CALL else kind
    return f"{name} %{instruction.name}{place_text(module, instruction)}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times" if count else "never"


def _by_data(left: Sequence[Effect], right: Sequence[Effect]) -> Sequence[Effect]:
    """Effects of one kind, each in the place of one that carries the same bits.

    As they are where they carry the same in their order, or other things altogether.
    """
    ours, theirs = [_bits(e) for e in left], [_bits(e) for e in right]
    if ours == theirs or Counter(ours) != Counter(theirs):
        return right
    waiting: dict[object, list[Effect]] = {}
    for key, effect in zip(theirs, right, strict=True):
        waiting.setdefault(key, []).append(effect)
    return [waiting[key].pop(0) for key in ours]


def _bits(effect: Effect) -> tuple[str, tuple[bytes, ...]]:
    arrays = arrays_of(effect.operands)
    return value_text(effect.operands), tuple(array.tobytes() for array in arrays)


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


def _swapped(places: Sequence[tuple[int, Effect, Effect]]) -> tuple[Effect, Effect] | None:
    """Two effects that the first program puts in this order, and the second has in the other one.

    `places` has the effects in the order of the first program, with their positions in the second.
    O(effects) where both have one order.
    """
    latest = -1
    for number, (place, second, _) in enumerate(places):
        if place < latest:
            for earlier, first, _ in places[max(number - _MOST_ORDERED, 0) : number]:
                if earlier > place and _must_follow(second, first):
                    return first, second
        latest = max(latest, place)
    return None


_MOST_ORDERED = 200
"""Effects before one in another place whose order is compared with its own."""


def _must_follow(second: Effect, first: Effect) -> bool:
    """Whether the text of a program says that one effect is behind another.

    Where their callers part they are in one computation, unless they are in two runs of a loop's.
    """
    mine, other = list(second.path), list(first.path)
    while mine and other and mine[0] == other[0]:
        del mine[0], other[0]
    after = mine[0][0] if mine else second.instruction
    before = other[0][0] if other else first.instruction
    return after is before or bool(depends_on(after, before))


def first_effect(module: Module) -> Instruction | None:
    """An instruction of a module that has an effect."""
    return next((i for i in module.instructions() if has_effect(i)), None)
