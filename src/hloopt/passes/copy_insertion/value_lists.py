"""The values of each buffer in the order in which they are in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from hloopt.analysis.dataflow import Use


class Node:
    """A value in the list of its buffer."""

    __slots__ = ("following", "link", "list", "preceding", "run", "uses", "value")

    def __init__(self, value: int, uses: list[Use]) -> None:
        self.value = value
        self.uses = uses
        self.list: ValueList
        self.preceding: Node | None = None
        self.following: Node | None = None
        self.link: tuple[Node, list[Use], bool] | None = None
        self.run: tuple[int, Node] | None = None
        """Caches of `Chains`: `link` holds for a following node and uses, `run` for an epoch."""

    @property
    def is_first(self) -> bool:
        return self.preceding is None

    @property
    def is_last(self) -> bool:
        return self.following is None

    def onwards(self) -> Iterator[Node]:
        """The node and all that follow it."""
        node: Node | None = self
        while node is not None:
            yield node
            node = node.following


class ValueList:
    """The list of a buffer. Lists are joined as buffers are; `current` is what one has become."""

    __slots__ = ("_joined", "epoch", "first", "last", "length", "version")

    _epochs = count()

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._joined: ValueList | None = None
        self.version = 0
        """Counts changes."""
        self.epoch = next(self._epochs)
        """Unique number of the order of the list; appending values keeps it."""
        self.length = 0
        self.first: Node | None = None
        self.last: Node | None = None
        for node in nodes:
            node.list = self
            node.preceding = self.last
            if self.last is None:
                self.first = node
            else:
                self.last.following = node
            self.last = node
            self.length += 1

    def current(self) -> ValueList:
        """The list that this one is part of by now. Amortized O(1)."""
        if self._joined is None:
            return self
        root = self._joined
        while root._joined is not None:
            root = root._joined
        node = self
        while node._joined is not None:
            node._joined, node = root, node._joined
        return root

    def renew(self) -> None:
        """Invalidate the cached runs of values."""
        self.epoch = next(self._epochs)


def list_of(node: Node) -> ValueList:
    """The list a node is in."""
    return node.list.current()


def remove(node: Node) -> None:
    """Take a node out of its list. O(1)."""
    joined = list_of(node)
    before, after = node.preceding, node.following
    if before is None:
        joined.first = after
    else:
        before.following = after
    if after is None:
        joined.last = before
    else:
        after.preceding = before
    node.preceding = node.following = None
    joined.length -= 1
    joined.version += 1
    joined.renew()


def insert_after(place: Node, other: ValueList) -> None:
    """Put all nodes of another list behind `place`. O(1)."""
    joined = list_of(place)
    assert other is not joined
    joined.version += 1
    joined.length += other.length
    other._joined = joined
    first, last = other.first, other.last
    if first is None or last is None:
        return
    after = place.following
    if after is not None:
        joined.renew()
    place.following, first.preceding = first, place
    last.following = after
    if after is None:
        joined.last = last
    else:
        after.preceding = last


def replace_by(place: Node, other: ValueList) -> None:
    """Put all nodes of another, not empty list where `place` stands, which leaves. O(1)."""
    insert_after(place, other)
    remove(place)
