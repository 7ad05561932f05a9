"""What the steps of matching two computations work on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from hloopt.analysis.matching.evidence import Witness
from hloopt.analysis.matching.graph import PairGraph
from hloopt.analysis.matching.labels import Labels, Level
from hloopt.ir.opcode import Opcode

_LEAVES = (Opcode.PARAMETER, Opcode.CONSTANT)


class MatchState:
    """The graph, and the labels of its unmatched nodes at one level of detail.

    `uses` are labels for asking what a node is used for: there, which parameter or constant it is
    does not count. Both are lists indexed by node; nodes with partners have none.
    """

    __slots__ = ("graph", "labels", "level", "uses", "witness")

    def __init__(self, graph: PairGraph, witness: Witness, labels: Labels, level: Level) -> None:
        self.graph = graph
        self.witness = witness
        self.level = level
        self.labels: list[int] = [-1] * len(graph.nodes)
        nodes = graph.unmatched()
        for node in nodes:
            self.labels[node] = labels.at(level, graph.nodes[node])
        self.uses = list(self.labels)
        if level is Level.CORE:
            for node in nodes:
                instruction = graph.nodes[node]
                if instruction.opcode in _LEAVES:
                    self.uses[node] = labels.at(Level.OPEN, instruction)

    def origins(self, nodes: Iterable[int]) -> Mapping[int, tuple[int, str]]:
        """The label and op_name of each of `nodes`."""
        return {node: (self.labels[node], self.witness.origin(node)) for node in nodes}


def unique_pairs(
    graph: PairGraph, keys: Sequence[Hashable] | Mapping[int, Hashable], nodes: Iterable[int]
) -> list[tuple[int, int]]:
    """Pairs of nodes of one key that no other of `nodes` on their side has, in order."""
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


def is_plausible(
    graph: PairGraph, old: int, new: int, proposals: Mapping[int, int] | None = None
) -> bool:
    """Whether an edge agrees, or none speaks against the pair; `proposals` count as partners.

    Operands that are both partners of others speak against it; one without a partner does not,
    for something may have been put in between or taken out. Likewise for users.
    """
    partner = graph.partner
    proposals = proposals or {}
    is_against = False
    for a, b in zip(graph.operands[old], graph.operands[new], strict=False):
        if partner[a] == b or (partner[a] < 0 and proposals.get(a) == b):
            return True
        is_against = is_against or (partner[a] >= 0 and partner[b] >= 0)
    old_users, new_users = graph.users[old], set(graph.users[new])
    for user, at in old_users:
        image = partner[user] if partner[user] >= 0 else proposals.get(user)
        if (image, at) in new_users:
            return True
    if not is_against and old_users and new_users:
        is_against = all(partner[user] >= 0 for user, _ in (*old_users, *new_users))
    return not is_against
