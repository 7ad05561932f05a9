"""The part of a plot that is shown: grouped by scopes, the costliest parts in detail."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from heapq import heappop, heappush, nlargest
from itertools import count, groupby

from hloopt.reports.scopes import scope_of
from hloopt.reports.skeleton.plot import Amounts, Kind, Step, folded, total_of


def arranged(steps: Sequence[Step], level: int = 0) -> tuple[Step, ...]:
    """Steps of one scope, one behind the other, as one step, and what follows itself as one.

    `level` is the number of parts of the scope around them all.
    """
    found: list[Step] = []
    for key, members in groupby(steps, key=lambda step: _key(step, level)):
        group = list(members)
        if key is None or len(group) == 1:
            found += group
            continue
        name, is_backward = key
        below = arranged(group, level + 1)
        mark = ", backward" if is_backward and not level else ""
        if len(below) == 1:
            (inner,) = below
            is_scope = inner.kind is Kind.SCOPE
            found.append(replace(inner, text=f"{name}/{inner.text}{mark}") if is_scope else inner)
            continue
        text = f"{name}{mark}"
        found.append(
            Step(Kind.SCOPE, text, group[0].place, group[0].name, total_of(group), below=below)
        )
    return folded(found)


def _key(step: Step, level: int) -> tuple[str, bool] | None:
    scope = scope_of(step.place)
    return (scope.parts[level], scope.is_backward) if len(scope.parts) > level else None


def shared_scope(steps: Iterable[Step]) -> tuple[str, ...]:
    """The parts that the scopes of all steps begin with."""
    shared = []
    for column in zip(*(scope_of(step.place).parts for step in steps), strict=False):
        if len(set(column)) > 1:
            break
        shared.append(column[0])
    return tuple(shared)


def condensed(steps: Sequence[Step], total: Amounts, lines: int) -> tuple[Step, ...]:
    """At most so many steps: where there are more, those between the costliest are one each."""
    if len(steps) <= lines:
        return tuple(steps)
    most = (lines - 1) // 2
    kept = {id(step) for step in nlargest(most, steps, lambda s: _weight(s.amounts, total))}
    found: list[Step] = []
    for is_kept, members in groupby(steps, key=lambda step: id(step) in kept):
        group = list(members)
        if is_kept or len(group) == 1:
            found += group
            continue
        first = group[0]
        found.append(
            Step(Kind.SCOPE, "…", first.place, first.name, total_of(group), below=tuple(group))
        )
    return tuple(found)


def shown(steps: Sequence[Step], total: Amounts, lines: int, depth: int | None = None) -> set[int]:
    """The ids of the steps whose own steps are shown too.

    All of them down to `depth`; without it the costliest, as long as there is room in so many
    lines. O(steps · log steps).
    """
    left = lines - len(steps)
    order = count()
    waiting: list[tuple[float, int, int, Step, int]] = []
    found: set[int] = set()

    def add(inner: Sequence[Step], level: int, runs: int) -> None:
        for step in inner:
            if len(step.inside) > 1 or (step.inside and step.kind is not Kind.REPEAT):
                weight = _weight(step.amounts.times(runs), total)
                heappush(waiting, (-weight, next(order), level, step, runs))

    add(steps, 1, 1)
    while waiting:
        _, _, level, step, runs = heappop(waiting)
        if (len(step.inside) <= left) if depth is None else (level < depth):
            left -= len(step.inside)
            found.add(id(step))
            is_many = step.kind in (Kind.LOOP, Kind.REPEAT)
            add(step.inside, level + 1, runs * step.count if is_many else runs)
    return found


def _weight(amounts: Amounts, total: Amounts) -> float:
    """The part of the time, without times of flops and bytes."""
    if total.seconds:
        return amounts.seconds / total.seconds
    return amounts.flops / max(1.0, total.flops) + amounts.bytes / max(1.0, total.bytes)
