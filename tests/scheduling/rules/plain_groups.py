"""Scheduling groups of XLA's latency-hiding scheduler, straight from their description."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tests.scheduling.rules.plain_rules import keeps_order

if TYPE_CHECKING:
    from tests.scheduling.rules.plain_scheduler import PlainScheduler


class PlainGroups:
    """The scheduling groups of a computation."""

    def __init__(self, plain: PlainScheduler) -> None:
        self.plain = plain
        if plain.top_down:
            self._begin_with_starts()
        self.members: dict[int, list[int]] = {}
        for node, group in plain.group.items():
            self.members.setdefault(group, []).append(node)
        self.done: set[int] = set()
        self.order: list[int] = []
        """Groups that became ready."""
        self._left: list[int] = []
        """Nodes that lost their group half way."""
        self._seen = 0
        """The number of taken nodes after which groups were looked at."""
        self._find_ready([])

    def _begin_with_starts(self) -> None:
        plain = self.plain
        for group in {*plain.group.values()}:
            nodes = [node for node, other in plain.group.items() if other == group]
            if {plain.nodes[n].opcode for n in nodes} <= {"async-start", "async-done"}:
                for node in nodes:
                    del plain.group[node]
                continue
            for node in nodes:
                start = (
                    plain.number[plain.nodes[node].operands[0]] if plain.nodes[node].operands else 0
                )
                if plain.nodes[node].opcode == "async-done" and start not in plain.group:
                    del plain.group[node]
                    plain.group[start] = group

    def _find_ready(self, ahead: list[int]) -> None:
        """Note groups that became ready: in the order of the edges of what was taken last."""
        plain = self.plain
        groups = dict.fromkeys(plain.group[n] for n in ahead if n in plain.group)
        for group in (*groups, *self.members):
            members = self.members[group]
            outside = {other for m in members for other, _ in plain.behind[m]} - {*members}
            is_left = any(node in plain.group for node in members)
            if group not in self.done and is_left and outside <= {*plain.sequence}:
                self.done.add(group)
                self.order.append(group)

    def attempt(self, *, most: bool) -> bool:
        plain = self.plain
        if plain.sequence:
            self._catch_up()
        if any(node not in plain.sequence for node in self._left):
            return False
        for place, group in enumerate(self.order):
            if plain.use.fits(self._needs(group, most=most)):
                self.order[place] = self.order[-1]
                self.order.pop()
                self._schedule(group)
                return True
        return False

    def _catch_up(self) -> None:
        """Look at each node taken since the last time."""
        plain = self.plain
        taken = plain.sequence
        for count in range(self._seen + 1, len(taken) + 1):
            plain.sequence = taken[:count]
            self._find_ready([other for other, _ in plain.ahead[taken[count - 1]]])
        plain.sequence = taken
        self._seen = len(taken)

    def dissolve_smallest(self) -> bool:
        plain = self.plain
        blocked = [plain.group[n] for n in plain.ready if n in plain.group]
        if not plain.config.deannotate_group_if_blocked or not blocked:
            return False
        group = min(blocked, key=lambda g: len(self.members[g]))
        for node in self.members[group]:
            plain.group.pop(node, None)
        self.done.add(group)
        if group in self.order:
            self.order.remove(group)
        return True

    def _needs(self, group: int, *, most: bool) -> Counter[str]:
        plain, members = self.plain, self.members[group]
        if keeps_order(plain, members[0]):
            return self._needs_in_order(members)
        needs: Counter[str] = Counter()
        for node in members:
            is_done = plain.nodes[node].opcode == "async-done"
            adds = is_done and (most or plain.number[plain.nodes[node].operands[0]] not in members)
            needs = needs + plain.use.needs(node) if adds else needs | plain.use.needs(node)
        return needs

    def _needs_in_order(self, members: list[int]) -> Counter[str]:
        plain = self.plain
        running: Counter[str] = Counter()
        most: Counter[str] = Counter()
        for node in sorted(members, reverse=True):
            if plain.is_start(node):
                for user in plain.nodes[node].users:
                    running.subtract(plain.use.needs(plain.number[user]))
            else:
                running.update(plain.use.needs(node))
                most |= running
        return most

    def _schedule(self, group: int) -> None:
        plain = self.plain
        left = list(self.members[group])
        listed: list[int] = []
        while left:
            listed += [n for n in plain.ready if n in left and n not in listed]
            ready = [n for n in listed if plain.use.fits(plain.use.needs(n))]
            if not ready:
                break
            best = ready[0]
            for other in ready[1:]:
                best = self._better(other, best)
            is_flexible = plain.config.flexible_scheduling_annotation_scheduling
            if len(left) == 1 and is_flexible and plain.is_start(best):
                break
            left.remove(best)
            listed = _without(listed, best)
            plain.take_of_group(best)
        for node in left:
            del plain.group[node]
            if plain.config.aggressive_flexible_annotation_scheduling:
                plain.delay_after_target.add(node)
        self._left = left

    def _better(self, a: int, b: int) -> int:
        """The one of two members to take first; `a` stands later in the list of ready nodes."""
        plain = self.plain
        if keeps_order(plain, a) and keeps_order(plain, b):
            return min(a, b) if plain.top_down else max(a, b)
        if plain.occupies(a) != plain.occupies(b):
            return a if plain.occupies(a) else b
        return b if plain.releases(a) and not plain.releases(b) else a


def _without(nodes: list[int], node: int) -> list[int]:
    """The last takes the place of the one that goes."""
    return [nodes[-1] if n == node else n for n in nodes[:-1]]
