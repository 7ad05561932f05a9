"""Two computations as one graph of numbered nodes, with the pairs found so far."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first, stable_order

Pairs = tuple[list[int], list[int]]
"""Nodes before and nodes after."""


class PairGraph:
    """The instructions of the computations before and after, numbered in one sequence.

    Nodes before come first; on each side operands come before their users. Lists are indexed by
    node.
    """

    __slots__ = (
        "_open",
        "_pairs",
        "_walks",
        "nodes",
        "operands",
        "partner",
        "roots",
        "split",
        "tokens",
        "users",
    )

    def __init__(
        self, before: Computation, after: Computation, hidden: Collection[Opcode] = ()
    ) -> None:
        """Make the graph; users of instructions with `hidden` opcodes read the operand of these."""
        self.nodes: list[Instruction] = []
        number: dict[Instruction, int] = {}
        for side in (before, after):
            self.split = len(self.nodes)
            """The number of nodes before, and so the first node after."""
            for node in stable_order(side):
                if node.opcode in hidden:
                    number[node] = number[node.operands[0]]
                else:
                    number[node] = len(self.nodes)
                    self.nodes.append(node)
        self.operands: list[list[int]] = [[number[o] for o in n.operands] for n in self.nodes]
        self.users: list[list[tuple[int, int]]] = [[] for _ in self.nodes]
        """The users of each node, each with the position of the operand."""
        for user, operands in enumerate(self.operands):
            for position, operand in enumerate(operands):
                self.users[operand].append((user, position))
        self.partner: list[int] = [-1] * len(self.nodes)
        """The partner of each node; -1 if unmatched."""
        self.tokens: list[int] = list(self.partner)
        """By node the number of its pair, below -1; -1 if unmatched."""
        self.roots = number[before.root], number[after.root]
        self._pairs = 0
        self._open = list(range(len(self.nodes)))
        self._walks: Pairs | None = None

    def pair(self, old: int, new: int) -> None:
        """Match two unmatched nodes for good."""
        self.partner[old] = new
        self.partner[new] = old
        self._pairs += 1
        self.tokens[old] = self.tokens[new] = -1 - self._pairs

    @property
    def is_open(self) -> bool:
        """Whether both sides have unmatched nodes."""
        return self._pairs < min(self.split, len(self.nodes) - self.split)

    def unmatched(self) -> list[int]:
        """The unmatched nodes, in order. O(nodes unmatched at the last call)."""
        partner = self.partner
        self._open = [node for node in self._open if partner[node] < 0]
        return self._open

    def sides(self, nodes: Iterable[int]) -> Pairs:
        """`nodes` split into those before and those after, in order."""
        sides: Pairs = [], []
        for node in nodes:
            sides[node >= self.split].append(node)
        return sides

    def degree(self, node: int) -> int:
        return len(self.operands[node]) + len(self.users[node])

    def walks(self) -> Pairs:
        """Each side in depth-first post-order from its root, then from other unused nodes.

        Independent of the order of the text. O(edges), once.
        """
        if self._walks is None:
            sides = range(self.split), range(self.split, len(self.nodes))
            old, new = (
                depth_first(
                    [root, *(node for node in side if not self.users[node])],
                    self.operands.__getitem__,
                )
                for root, side in zip(self.roots, sides, strict=True)
            )
            self._walks = old, new
        return self._walks
