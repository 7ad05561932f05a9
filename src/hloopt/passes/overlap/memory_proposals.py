"""Decisions by which a program may need less memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from hloopt.diagnostics import counted
from hloopt.passes.overlap.decisions import Decision
from hloopt.passes.overlap.judging import Judged
from hloopt.passes.overlap.options import Family
from hloopt.passes.overlap.proposals import ALGORITHMS, begun_with

_SHARES = (1.0, 0.95, 0.9, 0.8, 0.7)
"""Of the limit: rematerialization and the scheduler count memory before it is packed."""
_STACKS = tuple(mebibytes << 20 for mebibytes in (8192, 2048, 256, 16))
"""The bytes of the smallest stacks that are offloaded."""
_BLOCK = 8
"""Instructions in a row that are recomputed together."""

Series = tuple[Decision, ...]
"""Decisions of a kind, of which one is made, from what saves least memory on."""


def memory_proposals(judged: Judged, limit: int, families: tuple[Family, ...]) -> Iterator[Series]:
    """Decisions to choose from, for a program that needs more than `limit`."""
    shares = {int(limit * share) for share in _SHARES}
    goals = sorted(shares | {_below(judged.allocated)}, reverse=True)
    made = {(decision.pass_name, decision.options) for decision in judged.decisions}
    begun = [(begun_with(algorithm, "minimize"),) for algorithm in ALGORITHMS]
    for series in (_offloaded(), _recomputed(goals), *begun, _scheduled(goals)):
        left = tuple(
            each
            for each in series
            if each.family in families and (each.pass_name, each.options) not in made
        )
        if left:
            yield left


def _below(allocated: int) -> int:
    return int(allocated * _SHARES[1])


def offloaded(size: int) -> Decision:
    """The decision to move the stacks of at least so many bytes to host memory."""
    what = f"keep stacks of loops from {size >> 20:,} MiB on in host memory"
    return Decision("offload", "while-loop-residual-offloader", (("min_size", size),), what)


def _offloaded() -> Series:
    return tuple(map(offloaded, _STACKS))


def _recomputed(goals: list[int]) -> Series:
    return tuple(
        Decision(
            "rematerialize",
            "rematerialization",
            (
                ("recompute", True),
                ("algorithm", algorithm),
                ("block_size_limit", _BLOCK),
                ("memory_limit_bytes", goal),
            ),
            f"rematerialize down to {counted(goal, 'byte')}, {algorithm}",
            is_late=True,
        )
        for goal, algorithm in product(goals, ("peak-priority", "always"))
    )


def _scheduled(goals: list[int]) -> Series:
    return tuple(
        Decision(
            "minimize",
            "latency-hiding-scheduler",
            (("device_memory_size", goal),),
            f"schedule for a device of {counted(goal, 'byte')}",
            is_late=True,
        )
        for goal in goals
    )
