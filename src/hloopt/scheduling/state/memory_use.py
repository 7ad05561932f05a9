"""The use of memory while one computation is scheduled."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.scheduling.graph.graph import ScheduleGraph
from hloopt.scheduling.memory.pressure import BufferLife, Pressure


class _Outlooks(dict[int, tuple[int, int]]):
    """Answers about nodes, found when they are first asked for."""

    def __init__(self, find: Callable[[int], tuple[int, int]]) -> None:
        self._find = find

    def __missing__(self, node: int) -> tuple[int, int]:
        found = self[node] = self._find(node)
        return found


class MemoryUse:
    """The buffers that are alive, and the change that scheduling each node would make."""

    def __init__(
        self,
        graph: ScheduleGraph,
        life: BufferLife,
        limit: int | None,
        note_change: Callable[[int], None],
        *,
        top_down: bool,
    ) -> None:
        """`limit`: None where memory does not count. `note_change` is called with each node whose
        outlook changed."""
        self.life = life
        self.minds_limit = limit is not None
        self.limit = limit or 0
        self.is_near_limit = False
        """Whether more than a half of the limit is in use; see `look`."""
        self.is_over_limit = False
        self.pressure = Pressure(life, life.states[graph.computation].live_below)
        allocated, released = life.allocated, life.released
        if top_down:
            allocated, released = life.allocated_top_down, life.released_top_down
        self.allocated = [allocated(i) for i in graph.instructions]
        self.released = [released(i) for i in graph.instructions]
        self.inside = [life.peak_inside(i) for i in graph.instructions]
        self._graph = graph
        self._top_down = top_down
        self._note_change = note_change
        self._outlooks = _Outlooks(self._find_outlook)
        self.outlook = self._outlooks.__getitem__
        """The bytes by which scheduling a node would change usage, and at most adds meanwhile.

        A done right behind its start is seen with that. Kept up to date only with a limit.
        """
        self._readers: list[list[int]] = [[] for _ in life.size]
        """The nodes, by buffer, whose outlook depends on whether it is alive."""
        if self.minds_limit:
            self._find_readers()

    @property
    def usage(self) -> int:
        """Bytes in use."""
        return self.pressure.usage

    def _find_outlook(self, node: int) -> tuple[int, int]:
        found = self._outlook_of_one(node)
        for start in self._seen_with(node)[1:]:
            change, peak = self._outlook_of_one(start)
            found = min(found[0], change), max(found[1], peak)
        return found

    def _outlook_of_one(self, node: int) -> tuple[int, int]:
        return self.pressure.outlook(self.allocated[node], self.released[node], self.inside[node])

    def look(self) -> None:
        """Bring up to date what rules ask about the limit."""
        usage = self.pressure.usage
        self.is_near_limit = self.minds_limit and usage > self.limit // 2
        self.is_over_limit = self.is_near_limit and usage >= self.limit

    def take(self, node: int) -> None:
        """Go past a node. O(buffers)."""
        changed = self.pressure.move(self.allocated[node], self.released[node], self.inside[node])
        outlooks = self._outlooks
        for buffer in changed:
            for reader in self._readers[buffer]:
                if reader in outlooks:  # else nobody has asked for it
                    del outlooks[reader]
                    self._note_change(reader)

    def _find_readers(self) -> None:
        readers, graph = self._readers, self._graph
        for node, (allocated, released) in enumerate(
            zip(self.allocated, self.released, strict=True)
        ):
            if graph.takes_no_choice(node):
                continue
            for buffer in {*allocated, *released}:
                readers[buffer].append(node)
            if graph.is_done[node]:
                for start in self._seen_with(node)[1:]:
                    for buffer in {*self.allocated[start], *self.released[start]}:
                        readers[buffer].append(node)

    def _seen_with(self, node: int) -> tuple[int, ...]:
        """A node, and the start that its outlook includes."""
        graph = self._graph
        if graph.is_done[node] and not self._top_down and graph.predecessors[node]:
            start = graph.predecessors[node][0]
            if graph.is_start[start]:
                return node, start
        return (node,)
