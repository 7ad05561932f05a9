"""The sizes of dimensions as products of factors that many dimensions share.

A dimension of size 128 starts as one factor. Where a reshape makes it [4,32], it splits into a
factor 4 and a factor 32, major one first, and so does every dimension that shares it. In the end
each factor that nothing keeps can have another size, in all the dimensions it is part of. Sizes
that differ by a few elements (33 tokens and the 32 that have a successor) are related by their
rest: the larger one follows the smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple


class Factor:
    """A size that dimensions share. Compare what `leaves` gives: factors are merged and split."""

    __slots__ = ("parts", "reason", "same", "size")

    def __init__(self, size: int, reason: str = "") -> None:
        self.size = size
        self.reason = reason
        """The reason why the size has to stay; empty where it need not."""
        self.parts: tuple[Factor, ...] = ()
        """The factors it was split into, major first."""
        self.same: Factor | None = None
        """The factor it was merged into."""


def leaves(factors: Iterable[Factor]) -> list[Factor]:
    """The factors that these are made of, major first; those of size 1 are left out."""
    found: list[Factor] = []
    stack = list(factors)[::-1]
    while stack:
        factor = _representative(stack.pop())
        if factor.parts:
            stack += factor.parts[::-1]
        elif factor.size != 1:
            found.append(factor)
    return found


def _representative(factor: Factor) -> Factor:
    while factor.same is not None:
        if factor.same.same is not None:
            factor.same = factor.same.same
        factor = factor.same
    return factor


def keep(factors: Iterable[Factor], reason: str) -> None:
    """Let the sizes of these factors stay."""
    for factor in leaves(factors):
        factor.reason = factor.reason or reason


def equate(left: Sequence[Factor], right: Sequence[Factor], reason: str) -> None:
    """Make two products of factors, major first, the same product.

    Factors are merged and split from the major end on. Where sizes do not divide each other
    (6·10 and 4·15), those that make up the smallest common product stay, for `reason`.
    """
    lefts, rights = leaves(left)[::-1], leaves(right)[::-1]
    if lefts == rights:
        return
    if any(factor.size <= 0 for factor in (*lefts, *rights)):
        keep((*lefts, *rights), reason)
        return
    while lefts and rights:
        a, b = _take(lefts), _take(rights)
        if a is b:
            continue
        if a.size == b.size:
            a.same = b
            b.reason = b.reason or a.reason
        elif a.size % b.size == 0:
            lefts.append(_split(a, b))
        elif b.size % a.size == 0:
            rights.append(_split(b, a))
        else:
            _keep_common_product(a, b, lefts, rights, reason)
    keep((*lefts, *rights), reason)


def _take(stack: list[Factor]) -> Factor:
    """The next factor, which may have been merged or split since it was put there."""
    stack += leaves([stack.pop()])[::-1]
    return stack.pop()


def _split(factor: Factor, major: Factor) -> Factor:
    """Split off a major part; returns the rest."""
    rest = Factor(factor.size // major.size, factor.reason)
    factor.parts = (major, rest)
    major.reason = major.reason or factor.reason
    return rest


def _keep_common_product(
    a: Factor, b: Factor, lefts: list[Factor], rights: list[Factor], reason: str
) -> None:
    group = [a, b]
    left, right = a.size, b.size
    while left != right and (lefts if left < right else rights):
        factor = _take(lefts if left < right else rights)
        group.append(factor)
        if left < right:
            left *= factor.size
        else:
            right *= factor.size
    keep(group, reason)


class Rest(NamedTuple):
    """A size that is another one and a few elements more, however large that is."""

    whole: Factor
    part: Factor
    more: int
    reason: str


def relate_rests(rests: Sequence[Rest]) -> dict[Factor, Rest]:
    """The factors that follow another size, by increasing size.

    A size follows at most one other; where that is not so, or one of the two stays, both stay.
    """
    joined: set[tuple[Rest, Rest]] = set()
    while True:
        following: dict[Factor, Rest] = {}
        changed = False
        for rest in sorted(rests, key=lambda rest: rest.whole.size):
            whole, part = leaves([rest.whole]), leaves([rest.part])
            first = following.setdefault(whole[0], rest) if len(whole) == 1 else rest
            if first.more == rest.more and first != rest and (first, rest) not in joined:
                joined.add((first, rest))
                equate([first.part], [rest.part], rest.reason)
                changed = True
            elif (
                len(whole) != 1
                or whole[0].reason
                or first.more != rest.more
                or all(factor.reason for factor in part)
            ):
                changed |= not all(factor.reason for factor in (*whole, *part))
                keep((*whole, *part), rest.reason)
        if not changed:
            return {factor: rest for factor, rest in following.items() if not factor.reason}


def size_of(factors: Iterable[Factor], sizes: Mapping[Factor, int]) -> int:
    """The product of factors, some of which have new sizes."""
    return prod([sizes.get(leaf, leaf.size) for leaf in leaves(factors)])
