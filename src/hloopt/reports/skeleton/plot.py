"""The plot of a program: its steps in the order in which they run, with repetitions folded."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import reduce

from hloopt.reports.skeleton.folding import best_repeats


class Kind(StrEnum):
    """The kinds of steps."""

    PRODUCT = "product"
    COLLECTIVE = "collective"
    TRANSFER = "transfer"
    CUSTOM_CALL = "custom-call"
    OTHER = "other"
    LOOP = "loop"
    CONDITIONAL = "conditional"
    BRANCH = "branch"
    REPEAT = "repeat"
    SCOPE = "scope"


CONTAINERS = frozenset((Kind.LOOP, Kind.CONDITIONAL, Kind.BRANCH, Kind.REPEAT, Kind.SCOPE))


@dataclass(frozen=True, slots=True)
class Amounts:
    """Flops, bytes accessed, and seconds, 0 without a model of time."""

    flops: float = 0.0
    bytes: float = 0.0
    seconds: float = 0.0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(
            self.flops + other.flops, self.bytes + other.bytes, self.seconds + other.seconds
        )

    def __sub__(self, other: Amounts) -> Amounts:
        return self + other.times(-1)

    def times(self, count: int) -> Amounts:
        return Amounts(self.flops * count, self.bytes * count, self.seconds * count)


@dataclass(frozen=True, slots=True)
class Step:
    """A line of the plot: an operation, or steps that belong together."""

    kind: Kind
    text: str
    """Opcode, types and sizes: it is the same for steps that are alike."""
    place: str
    """Its op_name; numbers that differ between repetitions are `*`."""
    name: str
    """The instruction, of several the first one."""
    amounts: Amounts
    """Of one run of what it is in, all its own trips and repetitions together."""
    count: int = 1
    """The trips of a loop, the repetitions of a repeat."""
    is_counted: bool = True
    """Whether the trips of a loop are known."""
    below: tuple[Step, ...] = ()

    @property
    def inside(self) -> tuple[Step, ...]:
        """The steps that stand below its line: of one scope that is repeated those of the scope."""
        if self.kind is Kind.REPEAT and len(self.below) == 1 and self.below[0].kind is Kind.SCOPE:
            return self.below[0].below
        return self.below

    def operations(self) -> Counter[str]:
        """How often each operation runs in one trip or repetition, by opcode or target."""
        if self.kind is Kind.CUSTOM_CALL:
            return Counter({self.text: 1})
        if self.kind not in CONTAINERS:
            return Counter({self.text.split(" ", 1)[0]: 1})
        return operations_of(self.below)


def operations_of(steps: Iterable[Step]) -> Counter[str]:
    """How often each operation runs in steps, with all their trips and repetitions."""
    found: Counter[str] = Counter()
    for step in steps:
        for operation, count in step.operations().items():
            found[operation] += count * step.count
    return found


def loops_of(steps: Iterable[Step]) -> Counter[int | None]:
    """How many loops have so many trips, each loop of the text once; None: not known."""
    found: Counter[int | None] = Counter()
    for step in steps:
        times = step.count if step.kind is Kind.REPEAT else 1
        for trips, count in loops_of(step.below).items():
            found[trips] += count * times
        if step.kind is Kind.LOOP:
            found[step.count if step.is_counted else None] += 1
    return found


def folded(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps with each part that follows itself as one step.

    O(steps · 512) for each length and number of repetitions that there is.
    """
    found = list(steps)
    labels = [_label(step) for step in found]
    while repeats := best_repeats(labels):
        for first, length, count in reversed(repeats):
            parts = [
                found[first + number * length : first + (number + 1) * length]
                for number in range(count)
            ]
            found[first : first + length * count] = [_together(parts)]
            labels[first : first + length * count] = [_label(found[first])]
    return tuple(found)


def _label(step: Step) -> tuple[object, ...]:
    """Equal for steps that are alike; numbers in names of scopes may differ."""
    text = _NUMBER.sub("*", step.text) if step.kind is Kind.SCOPE else step.text
    return step.kind, text, step.count, tuple(map(_label, step.below))


def _together(parts: Sequence[Sequence[Step]]) -> Step:
    """A repeat of parts that are alike."""
    alike = tuple(_merged(steps) for steps in zip(*parts, strict=True))
    amounts = _sum(step.amounts for part in parts for step in part)
    if len(alike) == 1 and alike[0].kind is Kind.REPEAT:
        (inner,) = alike
        return replace(inner, count=inner.count * len(parts), amounts=amounts)
    below = folded(alike) if len(alike) > 1 else alike
    return Step(
        Kind.REPEAT, "", _common(step.place for step in alike), alike[0].name, amounts,
        len(parts), below=below,
    )  # fmt: skip


def _merged(steps: Sequence[Step]) -> Step:
    """Steps that are alike as one of them, with the mean of the amounts."""
    total = _sum(step.amounts for step in steps)
    count = len(steps)
    mean = Amounts(total.flops / count, total.bytes / count, total.seconds / count)
    below = tuple(_merged(inner) for inner in zip(*(s.below for s in steps), strict=True))
    texts, places = [s.text for s in steps], [s.place for s in steps]
    return replace(
        steps[0], text=_starred(texts), place=_starred(places), amounts=mean, below=below
    )


def total_of(steps: Iterable[Step]) -> Amounts:
    """The amounts of steps together."""
    return _sum(step.amounts for step in steps)


def _sum(amounts: Iterable[Amounts]) -> Amounts:
    return reduce(Amounts.__add__, amounts, Amounts())


_NUMBER = re.compile(r"\d+")


def _starred(places: Sequence[str]) -> str:
    """A text in which numbers that are not the same in all are `*`; of others the first one."""
    if len(set(places)) == 1:
        return places[0]
    forms = {_NUMBER.sub("*", place) for place in places}
    if len(forms) > 1:
        return _common(places)
    numbers = [set(found) for found in zip(*(_NUMBER.findall(p) for p in places), strict=True)]
    kept: Iterator[str] = (each.pop() if len(each) == 1 else "*" for each in numbers)
    return _NUMBER.sub(lambda _: next(kept), places[0])


def _common(places: Iterable[str]) -> str:
    """The parts of op_names that all of them begin with."""
    parts = [place.split("/") for place in places]
    shared = []
    for column in zip(*parts, strict=False):
        if len(set(column)) > 1:
            break
        shared.append(column[0])
    return "/".join(shared)
