"""Smaller programs with the same difference: without some steps of the generator."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

Fails = Callable[[Sequence[frozenset[str]]], list[bool]]
"""Whether programs without some steps still differ; asked of the compiler in one go."""


def reduced(
    steps: Callable[[frozenset[str]], list[str]], fails: Fails, seconds: float
) -> frozenset[str]:
    """The steps to leave out, found in `seconds`: as many as can be, a few runs at a time.

    `steps` names those that are left when some are skipped.
    """
    deadline = time.monotonic() + seconds
    skipped: frozenset[str] = frozenset()
    length = max(1, len(steps(skipped)) // 2)
    while time.monotonic() < deadline:
        left = steps(skipped)
        runs = [frozenset(left[at : at + length]) for at in range(0, len(left), length)]
        candidates = [skipped | run for run in runs]
        needless = [c for c, failed in zip(candidates, fails(candidates), strict=True) if failed]
        if needless:
            skipped = _joined(needless, fails, deadline)
        elif length == 1:
            break
        length = max(1, length // 2)
    return skipped


def _joined(candidates: list[frozenset[str]], fails: Fails, deadline: float) -> frozenset[str]:
    """The first of the halvings of all candidates together that still differs."""
    while len(candidates) > 1 and time.monotonic() < deadline:
        half = candidates[: len(candidates) // 2]
        unions = [frozenset().union(*candidates), frozenset().union(*half)]
        for union, failed in zip(unions, fails(unions), strict=True):
            if failed:
                return union
        candidates = half
    return candidates[0]
