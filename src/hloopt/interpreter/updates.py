"""Updates combined into rows of arrays, where a row may be updated more than once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from hloopt.interpreter.plan import Plans
from hloopt.interpreter.reducers import ufuncs_of
from hloopt.interpreter.scalar_calls import combine
from hloopt.interpreter.values import Array
from hloopt.ir.computation import Computation


def combine_in_order(
    plans: Plans,
    computation: Computation,
    results: Sequence[Array],
    numbers: Array,
    updates: Sequence[Array],
) -> None:
    """Combine row i of the updates into row `numbers[i]` of the results, in order, in place.

    Results and updates have two dimensions. O(n log n) in the rows of the updates, with one pass
    of NumPy where it has the computation itself or that takes the update, else one for each time
    that a row is updated again.
    """
    if computation.root in computation.parameters[len(results) :]:
        results[0][numbers] = updates[0]  # of equal numbers the last one counts
        return
    ufuncs = plans.ask(ufuncs_of, computation)
    if ufuncs is not None and _has_repeats(numbers):
        row_size = results[0].shape[1]
        places = (numbers[:, np.newaxis] * row_size + np.arange(row_size)).reshape(-1)
        for ufunc, result, update in zip(ufuncs, results, updates, strict=True):
            ufunc.at(result.reshape(-1), places, update.reshape(-1))
        return
    for turn in _turns(numbers):
        rows = numbers[turn]
        combined = combine(
            plans,
            computation,
            [result[rows] for result in results],
            [update[turn] for update in updates],
        )
        for result, values in zip(results, combined, strict=True):
            result[rows] = values


def _has_repeats(numbers: Array) -> bool:
    in_order = np.sort(numbers)
    return bool((in_order[1:] == in_order[:-1]).any())


def _turns(numbers: Array) -> Iterator[Array]:
    """Positions in `numbers` for one pass after the other: each has a number once at most.

    The n-th pass has the n-th occurrence of every number. O(n log n).
    """
    if not len(numbers):
        return
    by_number = np.argsort(numbers, kind="stable")
    in_order = numbers[by_number]
    is_first = np.concatenate([[True], in_order[1:] != in_order[:-1]])
    place = np.arange(len(numbers))
    occurrence = place - np.maximum.accumulate(np.where(is_first, place, 0))
    by_turn = by_number[np.argsort(occurrence, kind="stable")]
    yield from np.split(by_turn, np.cumsum(np.bincount(occurrence))[:-1])
