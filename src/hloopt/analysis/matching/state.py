"""The state that all steps of matching two computations share: graph, labels, evidence."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from hloopt.analysis.matching.evidence import Witness
from hloopt.analysis.matching.graph import PairGraph
from hloopt.analysis.matching.labels import Labels, Level, is_variadic
from hloopt.ir.opcode import Opcode

_LEAVES = (Opcode.PARAMETER, Opcode.CONSTANT)
_NOTHING: Mapping[int, int] = {}
_MANY_USERS = 16


class MatchState:
    """The graph, and the labels of its nodes at one level of detail.

    `uses` are labels to compare nodes by users: without the number of a parameter and the value of
    a constant. `users` are pairs of user and operand position, 0 where positions may shift. All
    are lists indexed by node.
    """

    __slots__ = ("graph", "labels", "level", "users", "uses", "witness")

    def __init__(self, graph: PairGraph, witness: Witness, labels: Labels, level: Level) -> None:
        self.graph = graph
        self.witness = witness
        self.level = level
        self.labels = [labels.at(level, node) for node in graph.nodes]
        self.uses = list(self.labels)
        if level is Level.CORE:
            for number, instruction in enumerate(graph.nodes):
                if instruction.opcode in _LEAVES:
                    self.uses[number] = labels.at(Level.OPEN, instruction)
        self.users = graph.users
        shifting = _shifting(graph, level)
        if shifting:
            self.users = [
                [(user, 0 if user in shifting else at) for user, at in users]
                for users in graph.users
            ]

    def origins(self, nodes: Iterable[int]) -> Mapping[int, tuple[int, str]]:
        """The label and op_name of each of `nodes`."""
        return {node: (self.labels[node], self.witness.origin(node)) for node in nodes}

    def operand_pairs(self, old: int, new: int) -> Iterable[tuple[int, int]]:
        """Pairs of operands at equal positions; empty if the numbers of operands differ."""
        operands = self.graph.operands
        if len(operands[old]) != len(operands[new]):
            return ()
        return zip(operands[old], operands[new], strict=True)

    def reads_partners(self, old: int, new: int, proposals: Mapping[int, int] = _NOTHING) -> bool:
        """Whether some operands at equal positions are partners, or proposed to be.

        Constants and operands with many users are no evidence.
        """
        graph, partner = self.graph, self.graph.partner
        return any(
            (partner[a] == b or (partner[a] < 0 and proposals.get(a) == b))
            and len(graph.users[a]) <= _MANY_USERS
            and graph.nodes[a].opcode is not Opcode.CONSTANT
            for a, b in self.operand_pairs(old, new)
        )

    def is_read_by_partners(
        self, old: int, new: int, proposals: Mapping[int, int] = _NOTHING
    ) -> bool:
        """Whether some users at equal positions are partners, or proposed to be."""
        partner = self.graph.partner
        new_users = set(self.users[new])
        return any(
            (partner[user] if partner[user] >= 0 else proposals.get(user), at) in new_users
            for user, at in self.users[old]
        )

    def is_plausible(self, old: int, new: int, proposals: Mapping[int, int] = _NOTHING) -> bool:
        """Whether both read partners, or no matched operand or user contradicts the pair."""
        partner = self.graph.partner
        if self.reads_partners(old, new, proposals):
            return True
        for a, b in self.operand_pairs(old, new):
            if partner[a] >= 0 or partner[b] >= 0:
                return False
        return self.is_read_by_partners(old, new, proposals) or not any(
            partner[user] >= 0 for user, _ in self.graph.users[old]
        )

    def has_no_rival_operands(self, old: int, new: int) -> bool:
        """Whether no operands at equal positions have other partners."""
        partner = self.graph.partner
        return not any(
            partner[a] >= 0 and partner[b] >= 0 and partner[a] != b
            for a, b in self.operand_pairs(old, new)
        )


def unique_pairs(
    graph: PairGraph, keys: Sequence[Hashable] | Mapping[int, Hashable], nodes: Iterable[int]
) -> list[tuple[int, int]]:
    """Pairs of nodes with equal keys that are unique among `nodes` on either side, in order."""
    once: tuple[dict[Hashable, int], dict[Hashable, int]] = {}, {}
    for node in nodes:
        side = once[node >= graph.split]
        key = keys[node]
        side[key] = -1 if key in side else node
    old_nodes, new_nodes = once
    return [
        (old, new_nodes[key])
        for key, old in old_nodes.items()
        if old >= 0 and new_nodes.get(key, -1) >= 0
    ]


def _shifting(graph: PairGraph, level: Level) -> frozenset[int]:
    """Nodes whose operand positions may shift against those of their partners: variadic ones.

    At CORE only the roots, if one has more operands, as after a result was added.
    """
    if level is not Level.CORE:
        return frozenset(n for n, each in enumerate(graph.nodes) if is_variadic(each))
    old, new = graph.roots
    same = len(graph.operands[old]) == len(graph.operands[new])
    return frozenset() if same else frozenset(graph.roots)
