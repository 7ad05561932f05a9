"""The search for blocks to rematerialize, beside one that tries all of them anew."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from tests.passes.rematerialization.programs import forward_and_backward, with_aliases
from tests.passes.rematerialization.walks import walk_of

from hloopt.passes.rematerialization.items import Item, Sequence
from hloopt.passes.rematerialization.readers import is_dead
from hloopt.passes.rematerialization.walk import Walk
from hloopt.passes.rematerialization.ways import Way
from hloopt.text import parse_module

LENGTHS = ((2, 2), (3, 4), (5, 8))
COMPRESSED = {
    "compress": True,
    "compact_shape_function": "swap-two-minor-dimensions",
    "size_function": "pad-minor-to-64",
}


def blocks(walk: Walk, shortest: int, longest: int) -> Iterator[list[Item]]:
    """The blocks before the current instruction that may be recomputed at all."""
    items = list(walk.tracker.sequence)
    current = walk.tracker.current
    assert current is not None
    items = items[: items.index(current)]
    for number, start in enumerate(items):
        if not start.is_candidate or is_dead(start, walk.tracker):
            continue
        for length in range(shortest, longest + 1):
            block = items[number : number + length]
            if len(block) == length and all(map(walk.ways.is_open, block)):
                yield block


def searched(walk: Walk, shortest: int, longest: int) -> tuple[Way | None, int]:
    """The best way, and the number of blocks, by trying all."""
    found: list[Way] = []
    effort = 0
    for block in blocks(walk, shortest, longest):
        effort += 1
        if not any(map(walk.tracker.is_used_now, block)):
            found += walk.ways.of_blocks(block, walk.ways.part, len(block))
    return min(found, key=lambda way: way.cost, default=None), effort


def described(way: Way | None) -> tuple[int, int, list[str]] | None:
    """A way in plain values: items are linked with each other, so a failure would show them all."""
    if way is None:
        return None
    return way.cost, way.saved, [item.instruction.name for item in way.block]


@pytest.mark.parametrize("options", [{}, COMPRESSED])
@pytest.mark.parametrize("at_peak", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_blocks_after_edits_and_moves(seed: int, at_peak: bool, options: dict[str, object]) -> None:
    dice = random.Random(seed)
    text = with_aliases(30, seed) if seed % 3 else forward_and_backward(30, seed)
    walk = walk_of(text, {"recompute": True, **options}, at_peak=at_peak)
    edits = 0
    for _ in range(60):
        items = list(walk.tracker.sequence)
        here = 0 if walk.tracker.current is None else items.index(walk.tracker.current)
        back = 6 if at_peak else 0
        there = min(max(here + dice.randint(-back, 9), 5), len(items) - 1)
        walk.go_to(items[there])
        ways = [walk.search.best(1, 1)]
        for lengths in LENGTHS:
            way, effort = searched(walk, *lengths)
            found, expected = described(walk.search.best(*lengths)), described(way)
            assert found == expected
            assert walk.search.effort(*lengths) == effort
            ways.append(way)
        chosen = dice.choice(ways)
        if chosen is not None and dice.random() < 0.7:
            edits += walk.apply(chosen, items[there])
    assert edits > 5


def test_the_order_of_a_schedule_after_many_insertions_at_few_places() -> None:
    module = parse_module(forward_and_backward(10))
    instructions = list(module.entry.instructions)
    sequence = Sequence(instructions[:3])
    expected = instructions[:3]
    dice = random.Random(0)
    spare = iter(parse_module(forward_and_backward(1000)).entry.instructions)
    for _ in range(1500):
        new, number = next(spare), dice.choice([0, 0, 1, len(expected) - 1])
        sequence.insert_after(new, sequence.item(expected[number]))
        expected.insert(number + 1, new)
    assert sequence.instructions() == expected
    positions = [item.position for item in sequence]
    assert positions == sorted(set(positions))
