"""An order of a graph's nodes that stays right while edges come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hloopt.diagnostics import HloVerifyError


class TopologicalOrder:
    """Numbered nodes, each behind its sources: D. J. Pearce and P. H. J. Kelly, A Dynamic
    Topological Sort Algorithm for Directed Acyclic Graphs, 2006.

    Nodes are numbered in an order that is right at the start.
    """

    __slots__ = ("_followers", "at", "position", "sources")

    def __init__(self, sources: list[list[int]]) -> None:
        """`sources` of each node have lower numbers, each once. O(nodes)."""
        self.sources = sources
        self.at = list(range(len(sources)))
        """The node at each position."""
        self.position = list(self.at)
        """The position of each node."""
        self._followers: list[dict[int, None]] | None = None

    @property
    def followers(self) -> Sequence[Iterable[int]]:
        """The nodes that each node is a source of. O(edges) at first, then O(1)."""
        return self._linked()

    def _linked(self) -> list[dict[int, None]]:
        if self._followers is None:
            self._followers = [{} for _ in self.sources]
            for node, sources in enumerate(self.sources):
                for source in sources:
                    self._followers[source][node] = None
        return self._followers

    def change(self, sources: dict[int, list[int]]) -> None:
        """Give nodes other sources, all at once, and repair the order.

        O(edges of nodes between an edge's ends) for each new edge that leads backwards, else O(1).
        Raises HloVerifyError on a cycle; the order is of no use then.
        """
        followers = self._linked()
        added: list[tuple[int, int]] = []
        for node, new in sources.items():
            old = dict.fromkeys(self.sources[node])
            kept = old.keys() & new
            added += [(source, node) for source in new if source not in kept]
            for source in old.keys() - kept:
                del followers[source][node]
            self.sources[node] = [source for source in old if source in kept]
        for source, node in added:  # one by one: each repair needs the edges before it in order
            followers[source][node] = None
            self.sources[node].append(source)
            if self.position[source] > self.position[node]:
                self._repair(source, node)

    def _repair(self, source: int, node: int) -> None:
        """Move what leads to `source` before what follows `node`, within their places."""
        position = self.position
        first, last = position[node], position[source]
        behind = self._found(node, self._linked().__getitem__, lambda p: p <= last)
        if source in behind:
            raise HloVerifyError("an instruction depends on itself")
        before = self._found(source, self.sources.__getitem__, lambda p: p >= first)
        moved = sorted(before, key=position.__getitem__)
        moved += sorted(behind, key=position.__getitem__)
        places = sorted(position[moving] for moving in moved)
        for moving, place in zip(moved, places, strict=True):
            position[moving] = place
            self.at[place] = moving

    def _found(
        self, start: int, onward: Callable[[int], Iterable[int]], within: Callable[[int], bool]
    ) -> set[int]:
        """`start` and the nodes reached from it over nodes at positions `within` bounds."""
        found = {start}
        stack = [start]
        while stack:
            for other in onward(stack.pop()):
                if other not in found and within(self.position[other]):
                    found.add(other)
                    stack.append(other)
        return found
