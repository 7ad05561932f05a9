"""Weigh candidates so that collectives were made in the order in which they are numbered."""

from __future__ import annotations

from collections.abc import Sequence

_BACKWARDS = 5.0
"""Cost of a collective that was made before one with a smaller number."""

Scored = Sequence[tuple[int, float]]
"""Position and score of each candidate of a collective."""


def best_totals(scores: Sequence[Scored]) -> list[list[float]]:
    """For each candidate of each collective the best total of all choices that include it.

    A choice costs more where positions decrease. O(collectives · candidates²).
    """
    forward = _totals(scores, 1)
    backward = _totals([*reversed(scores)], -1)[::-1]
    return [
        [a + b - own for a, b, (_, own) in zip(left, right, items, strict=True)]
        for left, right, items in zip(forward, backward, scores, strict=True)
    ]


def _totals(scores: Sequence[Scored], sign: int) -> list[list[float]]:
    """The best totals of the choices that end with each candidate."""
    totals: list[list[float]] = []
    previous: list[tuple[int, float]] = []
    for items in scores:
        row = [
            own
            + max(
                (
                    total - _BACKWARDS * ((position - before) * sign < 0)
                    for before, total in previous
                ),
                default=0.0,
            )
            for position, own in items
        ]
        totals.append(row)
        if items:
            previous = [(p, total) for (p, _), total in zip(items, row, strict=True)]
    return totals
