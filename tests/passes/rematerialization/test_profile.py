"""Memory while a schedule is edited, beside that of a walk along the result, and time."""

from __future__ import annotations

import gc
import random
import time

import pytest
from tests.passes.rematerialization.programs import forward_and_backward
from tests.passes.rematerialization.walks import walk_of

from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.rematerialization.profile import MemoryProfile
from hloopt.passes.rematerialization.walk import Walk
from hloopt.text import parse_module

HOST = {
    "host_offload": True,
    "host_memory_space": 5,
    "bandwidth_to_host_bytes_per_second": 1e3,
    "bandwidth_from_host_bytes_per_second": 1e3,
    "flops_per_second": 256,
}


def memories(walk: Walk) -> dict[str, int]:
    """The bytes at each instruction of the schedule as it is now, by a walk of its own."""
    walk.finish()
    tracker = walk.state.tracker(walk.computation)
    found = {}
    for item in tracker.sequence:
        tracker.begin(item)
        found[item.instruction.name] = tracker.memory
        tracker.end()
    return found


@pytest.mark.parametrize("options", [{"recompute": True}, HOST, {"recompute": True, **HOST}])
@pytest.mark.parametrize("seed", range(4))
def test_memory_after_edits_and_moves_in_both_directions(
    options: dict[str, object], seed: int
) -> None:
    walk = walk_of(forward_and_backward(40, seed), options)
    dice = random.Random(seed)
    profile = MemoryProfile(walk.tracker, walk.state.callees_memory)
    edits = 0
    for _ in range(40):
        expected = memories(walk)
        peak, place = profile.peak()
        assert place is not None
        assert peak == max(expected.values())
        assert place.instruction.name == next(n for n, m in expected.items() if m == peak)
        for item in (*dice.sample(list(walk.tracker.sequence)[5:], 3), place):
            assert profile.memory(item) == expected[item.instruction.name]
            walk.go_to(item)
            assert walk.memory(item) == expected[item.instruction.name]
        way = walk.search.best(1, 1)
        if way is not None and walk.apply(way, place):
            edits += 1
        profile.update()
    assert edits > 5


@pytest.mark.parametrize(("limit", "size"), [(700, 700), (300, 300)])
@pytest.mark.parametrize("algorithm", ["always", "peak-priority"])
def test_time_of_each_instruction_does_not_grow_with_their_number(
    algorithm: str, limit: int, size: int
) -> None:
    """With the lower limit blocks are searched, too, since single instructions do not suffice."""
    options = {"recompute": True, "algorithm": algorithm, "block_size_limit": 8}

    def seconds(size: int) -> float:
        module = parse_module(forward_and_backward(size))
        made = create_pass("rematerialization", {**options, "memory_limit_bytes": size * limit})
        # How often the collector runs depends on what other tests left behind.
        gc.collect()
        gc.disable()
        try:
            begin = time.process_time()
            assert made.run(module, PassContext())
            return time.process_time() - begin
        finally:
            gc.enable()

    # Caches and a busy neighbour make larger modules a third slower for their size at most; to go
    # through the placed instructions for each block makes them more than twice as slow.
    ratio = min(seconds(4 * size) for _ in range(3)) / 4 / min(seconds(size) for _ in range(3))
    assert ratio < 1.6
