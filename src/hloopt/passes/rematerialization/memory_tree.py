"""A balanced tree over a schedule that knows where most memory is in use."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hloopt.ir import Instruction
from hloopt.passes.rematerialization.items import Item

_CHILDREN = 8
"""Of a new node; one with more than twice as many is split."""


@dataclass(slots=True, eq=False)
class Node:
    """Neighbouring items, or one of them."""

    item: Item | None = None
    """Of a leaf."""
    begin: int = 0
    """Bytes that the item adds when it begins."""
    end: int = 0
    """Bytes that it takes away when it ends."""
    children: list[Node] = field(default_factory=list)
    parent: Node | None = None
    total: int = 0
    """Bytes in use behind the node, less those before it."""
    highest: int = 0
    """The most bytes at an item of the node, less those before it."""
    place: Item | None = None
    """The first item with so many."""
    is_stale: bool = True


class MemoryTree:
    """Bytes in use along a schedule, of which single items change.

    O(log items) for each change and each question, amortized.
    """

    def __init__(self, items: Iterable[Item], callees_memory: Callable[[Instruction], int]) -> None:
        self._callees_memory = callees_memory
        nodes = [Node(item) for item in items]
        self._leaves = {node.item: node for node in nodes if node.item is not None}
        while len(nodes) > 1:
            starts = range(0, len(nodes), _CHILDREN)
            nodes = [self._over(nodes[start : start + _CHILDREN]) for start in starts]
        (self._root,) = nodes

    def __contains__(self, item: Item) -> bool:
        return item in self._leaves

    def highest(self) -> tuple[int, Item | None]:
        """The most bytes at an item, callees included, and the first item with so many."""
        self._refresh(self._root)
        return self._root.highest, self._root.place

    def memory(self, item: Item) -> int:
        """Bytes at an item, without its callees."""
        node = self._leaves[item]
        memory = node.begin
        while (parent := node.parent) is not None:
            for child in parent.children:
                if child is node:
                    break
                self._refresh(child)
                memory += child.total
            node = parent
        return memory

    # -- changes --------------------------------------------------------------------------------

    def insert(self, item: Item, place: Item) -> None:
        """Let a new item come directly behind `place`."""
        before = self._leaves[place]
        node = self._leaves[item] = Node(item)
        self._insert(node, before)

    def remove(self, item: Item) -> None:
        node = self._leaves.pop(item)
        if node.parent is not None:
            node.parent.children.remove(node)
            self._outdate(node.parent)

    def count(self, item: Item, *, begin: int = 0, end: int = 0) -> None:
        """Let an item add more bytes when it begins, or take more away when it ends."""
        node = self._leaves.get(item)
        if node is not None:
            node.begin += begin
            node.end += end
            self._outdate(node)

    def recount(self, item: Item) -> None:
        """Ask again what the callees of an item need."""
        self._outdate(self._leaves[item])

    # -- nodes ----------------------------------------------------------------------------------

    @staticmethod
    def _over(children: list[Node]) -> Node:
        parent = Node(children=children)
        for child in children:
            child.parent = parent
        return parent

    def _insert(self, node: Node, before: Node) -> None:
        """Put a node directly behind another, and split what becomes too long."""
        parent = before.parent
        if parent is None:
            self._root = self._over([before, node])
            return
        parent.children.insert(parent.children.index(before) + 1, node)
        node.parent = parent
        self._outdate(node)
        self._outdate(parent)
        if len(parent.children) > 2 * _CHILDREN:
            behind = self._over(parent.children[_CHILDREN:])
            del parent.children[_CHILDREN:]
            self._insert(behind, parent)

    @staticmethod
    def _outdate(node: Node | None) -> None:
        """Let a node, and those that it is part of, be added up again when they are asked for."""
        while node is not None and not node.is_stale:
            node.is_stale = True
            node = node.parent

    def _refresh(self, node: Node) -> None:
        if not node.is_stale:
            return
        node.is_stale = False
        if node.item is not None:
            node.total = node.begin - node.end
            node.highest = node.begin + self._callees_memory(node.item.instruction)
            node.place = node.item
            return
        memory, node.highest, node.place = 0, 0, None
        for child in node.children:
            self._refresh(child)
            if child.place is not None and (
                node.place is None or memory + child.highest > node.highest
            ):
                node.highest, node.place = memory + child.highest, child.place
            memory += child.total
        node.total = memory
