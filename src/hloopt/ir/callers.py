"""The callers of computations, direct ones and those further up."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.ir.computation import Computation


def with_callers(computations: Iterable[Computation]) -> set[Computation]:
    """The given computations, and all that call them, directly or not. O(calls)."""
    found = set(computations)
    waiting = list(found)
    while waiting:
        for caller in waiting.pop().callers:
            if caller.parent not in found:
                found.add(caller.parent)
                waiting.append(caller.parent)
    return found
