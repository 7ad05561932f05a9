"""The part of a plot that is shown: grouped by scopes, the costliest parts in detail."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush, nlargest
from itertools import count, groupby

from hloopt.reports.skeleton.plot import CONTAINERS, Amounts, Kind, Step, total_of

LINES = 48
"""Lines of a plot: with the title and what is below it, it fits on a screen."""
_WRAPPED = re.compile(r"(\w+)\((.*)\)$")
_BRANCH = re.compile(r"branch_\d+_fun$")
_NO_SCOPES = frozenset(
    (
        *("while", "body", "cond", "closed_call", "checkpoint", "rematted_computation"),
        *("custom_jvp_call", "custom_vjp_call", "core_call", "remat", "pjit", "shard_map"),
    )
)
"""Parts of op_name that JAX puts around a call and a loop; around a branch `branch_1_fun`."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The parts of an op_name that a program gave, and whether it is of the backward pass."""

    parts: tuple[str, ...]
    is_backward: bool


def scope_of(op_name: str) -> Scope:
    """The scope of an op_name, without the operation, which is its last part.

    `jit(step)/transpose(jvp(layers))/while/body/mlp/dot_general` is layers, mlp, backward.
    """
    parts = []
    is_backward = False
    for part in _split(op_name)[1:-1]:
        while (wrapped := _WRAPPED.match(part)) is not None:
            is_backward |= wrapped[1] == "transpose"
            part = wrapped[2]
        if part and part not in _NO_SCOPES and not _BRANCH.match(part):
            parts.append(part)
    return Scope(tuple(parts), is_backward)


def _split(op_name: str) -> list[str]:
    """The parts between slashes that are in no parentheses."""
    parts, depth, start = [], 0, 0
    for place, char in enumerate(op_name):
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
        elif char == "/" and depth <= 0:
            parts.append(op_name[start:place])
            start = place + 1
    return [*parts, op_name[start:]]


def grouped(steps: Sequence[Step], level: int = 0) -> tuple[Step, ...]:
    """Steps of one scope, one behind the other, as one step. `level` is that of what is around."""
    found: list[Step] = []
    for key, members in groupby(steps, key=lambda step: _key(step, level)):
        group = [_inside(step, level) for step in members]
        if key is None or len(group) == 1:
            found += group
            continue
        name, is_backward = key
        below = grouped(group, level + 1)
        mark = ", backward" if is_backward and not level else ""
        if len(below) == 1 and below[0].kind is Kind.SCOPE:
            (inner,) = below
            found.append(replace(inner, text=f"{name}/{inner.text}{mark}"))
            continue
        text = f"{name}{mark}"
        found.append(
            Step(Kind.SCOPE, text, group[0].place, group[0].name, total_of(group), below=below)
        )
    return tuple(found)


def _key(step: Step, level: int) -> tuple[str, bool] | None:
    scope = scope_of(step.place)
    return (scope.parts[level], scope.is_backward) if len(scope.parts) > level else None


def _inside(step: Step, level: int) -> Step:
    """A step whose own steps are grouped by scopes further in than its own."""
    if step.kind not in CONTAINERS or step.kind is Kind.SCOPE:
        return step
    return replace(step, below=grouped(step.below, max(level, len(shared_scope(step.below)))))


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
            if len(step.below) > 1 or (step.below and step.kind is not Kind.REPEAT):
                weight = _weight(step.amounts.times(runs), total)
                heappush(waiting, (-weight, next(order), level, step, runs))

    add(steps, 1, 1)
    while waiting:
        _, _, level, step, runs = heappop(waiting)
        if (len(step.below) <= left) if depth is None else (level < depth):
            left -= len(step.below)
            found.add(id(step))
            is_many = step.kind in (Kind.LOOP, Kind.REPEAT)
            add(step.below, level + 1, runs * step.count if is_many else runs)
    return found


def _weight(amounts: Amounts, total: Amounts) -> float:
    """The part of the time, without times of flops and bytes."""
    if total.seconds:
        return amounts.seconds / total.seconds
    return amounts.flops / max(1.0, total.flops) + amounts.bytes / max(1.0, total.bytes)
