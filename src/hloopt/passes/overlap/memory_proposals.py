"""Decisions by which a program may need less memory."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.diagnostics import counted
from hloopt.ir.module import Module
from hloopt.passes.memory_space.residuals.offloader import movable_stacks
from hloopt.passes.overlap.decisions import Decision
from hloopt.passes.overlap.judging import Judged
from hloopt.passes.overlap.options import Family
from hloopt.passes.overlap.proposals import ALGORITHMS, begun_with, listed

_SHARES = (1.0, 0.95, 0.9, 0.8, 0.7)
"""Of the limit: rematerialization and the scheduler count memory before it is packed."""
_SMALLEST = 16 << 20
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
    recomputed = [_recomputed(goals, algorithm) for algorithm in ("peak-priority", "always")]
    for series in (*recomputed, *begun, _scheduled(goals)):
        left = tuple(
            each
            for each in series
            if each.family in families and (each.pass_name, each.options) not in made
        )
        if left:
            yield left


def _below(allocated: int) -> int:
    return int(allocated * _SHARES[1])


def sunk() -> Decision:
    """The decision to transpose slices in loops in place of the arrays that they are of."""
    what = "transpose slices in loops in place of whole arrays"
    return Decision("sink", "while-loop-transpose-sinking", (), what)


def alike_stacks(module: Module) -> list[tuple[str, ...]]:
    """The names that stacks begin as that may move to host memory, those of one shape together."""
    alike: dict[str, list[str]] = {}
    for stack in movable_stacks(module, _SMALLEST):
        alike.setdefault(stack.fill.shape.text, []).append(stack.fill.name)
    return [tuple(dict.fromkeys(names)) for names in alike.values()]


def offloaded(names: tuple[str, ...]) -> Decision:
    """The decision to move stacks to host memory: those that begin as these, all without any."""
    stacks = f"{counted(len(names), 'stack')}, {listed(names)}," if names else "all stacks"
    options = (("names", names), ("min_size", 0))
    return Decision(
        "offload", "while-loop-residual-offloader", options, f"keep {stacks} in host memory"
    )


def _recomputed(goals: list[int], algorithm: str) -> Series:
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
        for goal in goals
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
