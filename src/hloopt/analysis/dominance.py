"""The nodes of a graph that no way from its roots to another node can avoid."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

Node = TypeVar("Node", bound=Hashable)


class Dominators(Generic[Node]):
    """The dominator tree of an acyclic graph.

    The nearest dominator of a node is the nearest common ancestor, in the tree so far, of its
    predecessors (Cooper, Harvey, Kennedy: A Simple, Fast Dominance Algorithm, 2001). Besides its
    parent each node of the tree knows a far ancestor, so that a way up takes O(log nodes) steps
    (Myers: An Applicative Random-Access Stack, 1983). O(nodes + edges * log nodes) to build.
    """

    __slots__ = ("_depth", "_far", "_numbers", "_parent")

    def __init__(
        self, order: Iterable[Node], predecessors: Callable[[Node], Iterable[Node]]
    ) -> None:
        """`order` holds each node once, behind all its predecessors; roots have none."""
        self._numbers: dict[Node, int] = {}
        self._parent, self._far, self._depth = [0], [0], [0]  # 0 stands above all roots
        for node in order:
            above = [self._numbers[predecessor] for predecessor in predecessors(node)]
            parent = above[0] if above else 0
            for other in above[1:]:
                parent = self._common(parent, other)
            self._numbers[node] = len(self._parent)
            self._append(parent)

    def dominates(self, a: Node, b: Node) -> bool:
        """Whether each way from a root to `b` leads through `a`, which may be `b`."""
        number = self._numbers[a]
        return self._ancestor(self._numbers[b], self._depth[number]) == number

    def _append(self, parent: int) -> None:
        depth, far = self._depth, self._far
        middle = far[parent]
        is_even = depth[parent] - depth[middle] == depth[middle] - depth[far[middle]]
        far.append(far[middle] if is_even else parent)
        self._parent.append(parent)
        depth.append(depth[parent] + 1)

    def _ancestor(self, number: int, depth: int) -> int:
        """The dominator of `number` at a depth; itself if it does not stand deeper."""
        while self._depth[number] > depth:
            far = self._far[number]
            number = far if self._depth[far] >= depth else self._parent[number]
        return number

    def _common(self, a: int, b: int) -> int:
        """The nearest common ancestor."""
        a, b = self._ancestor(a, self._depth[b]), self._ancestor(b, self._depth[a])
        while a != b:  # far ancestors of nodes of one depth are of one depth
            if self._far[a] != self._far[b]:
                a, b = self._far[a], self._far[b]
            else:
                a, b = self._parent[a], self._parent[b]
        return a
