"""Decisions by which a program may need less memory."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.diagnostics import counted
from hloopt.passes.overlap.decisions import Decision
from hloopt.passes.overlap.judging import Judged
from hloopt.passes.overlap.options import Family
from hloopt.passes.overlap.proposals import ALGORITHMS, begun_with

_SHARES = (1.0, 0.95, 0.9, 0.8, 0.7)
"""Of the limit: rematerialization and the scheduler count memory before it is packed."""
_STACKS = tuple(mebibytes << 20 for mebibytes in (16, 256, 2048, 8192))
"""The bytes of the smallest stacks that are offloaded."""
_BLOCK = 8
"""Instructions in a row that are recomputed together."""


def memory_proposals(
    judged: Judged, limit: int, families: tuple[Family, ...]
) -> Iterator[tuple[Decision, ...]]:
    """Decisions to make together, for a program that needs more than `limit`."""
    goals = sorted({int(limit * share) for share in _SHARES} | {_below(judged.allocated)})
    made = {(decision.pass_name, decision.options) for decision in judged.decisions}
    for decision in (*_offloaded(), *_recomputed(goals), *_minimized(goals)):
        if decision.family in families and (decision.pass_name, decision.options) not in made:
            yield (decision,)


def _below(allocated: int) -> int:
    return int(allocated * _SHARES[1])


def _offloaded() -> Iterator[Decision]:
    for size in _STACKS:
        what = f"keep stacks of loops from {size >> 20:,} MiB on in host memory"
        yield Decision("offload", "while-loop-residual-offloader", (("min_size", size),), what)


def _recomputed(goals: list[int]) -> Iterator[Decision]:
    for algorithm in ("peak-priority", "always"):
        for goal in goals:
            options = (
                ("recompute", True),
                ("algorithm", algorithm),
                ("block_size_limit", _BLOCK),
                ("memory_limit_bytes", goal),
            )
            what = f"rematerialize down to {counted(goal, 'byte')}, {algorithm}"
            yield Decision("rematerialize", "rematerialization", options, what, is_late=True)


def _minimized(goals: list[int]) -> Iterator[Decision]:
    for algorithm in ALGORITHMS:
        yield begun_with(algorithm, "minimize")
    for goal in goals:
        options = (("device_memory_size", goal),)
        what = f"schedule for a device of {counted(goal, 'byte')}"
        yield Decision("minimize", "latency-hiding-scheduler", options, what, is_late=True)
