"""Settling of disputes: nodes for which operands propose one partner and users another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hloopt.analysis.matching.evidence import Evidence, Witness
from hloopt.analysis.matching.graph import PairGraph
from hloopt.analysis.matching.state import MatchState

_Pair = tuple[int, int]
_Chain = list[int]
"""Nodes each of which is a proposed partner of the next, in turn by operands and by users."""


def settle(state: MatchState, by_leaves: Iterable[_Pair], by_roots: Iterable[_Pair]) -> int:
    """Pair nodes as `by_leaves` proposes, and by evidence where `by_roots` disputes that.

    A row of n equal layers of which one is gone makes a chain of 2n-1 nodes for each instruction
    of a layer: before the missing layer partners compute the same, after it they have the same
    users. Neighbouring chains of one length decide together which layer is missing, so that whole
    layers are; without evidence it is the last. Returns how many pairs.
    """
    leaves, roots = _both_ways(by_leaves), _both_ways(by_roots)
    graph = state.graph
    disputed: list[int] = []
    found = 0
    for old, new in leaves.items():
        if old < graph.split:
            if roots.get(old, new) != new or roots.get(new, old) != old:
                disputed.append(old)
            else:
                graph.pair(old, new)
                found += 1
    for chains in _neighbouring(graph, _chains(disputed, leaves, roots, graph.split)):
        for chain, cut in zip(chains, _cuts(chains, state.witness, graph.split), strict=True):
            for pair in _pairs(chain, cut, graph.split):
                graph.pair(*pair)
                found += 1
    return found


def _both_ways(pairs: Iterable[_Pair]) -> dict[int, int]:
    table: dict[int, int] = {}
    for old, new in pairs:
        table[old] = new
        table[new] = old
    return table


def _chains(
    disputed: Sequence[int], leaves: Mapping[int, int], roots: Mapping[int, int], split: int
) -> list[_Chain]:
    """The chains of proposals that contain `disputed` nodes, in topological order of their ends."""
    members: dict[int, None] = {}
    waiting = list(disputed)
    while waiting:
        node = waiting.pop()
        if node not in members:
            members[node] = None
            waiting += [table[node] for table in (leaves, roots) if node in table]
    ends = [node for node in members if (node in leaves) != (node in roots)]
    chains: list[_Chain] = []
    seen: set[int] = set()
    for start in sorted(ends) + sorted(members):  # a chain begins at an end; a ring anywhere
        if start in seen:
            continue
        seen.add(start)
        table, other = (leaves, roots) if start in leaves else (roots, leaves)
        chain = [start]
        while (following := table.get(chain[-1])) is not None and following not in seen:
            seen.add(following)
            chain.append(following)
            table, other = other, table
        if start not in leaves and len(chain) % 2:
            chain.reverse()
        chains.append(chain)
    return chains


def _neighbouring(graph: PairGraph, chains: Sequence[_Chain]) -> list[list[_Chain]]:
    """Groups of chains that edges connect and that agree in length and first side."""
    chain_of = {node: number for number, chain in enumerate(chains) for node in chain}
    home = list(range(len(chains)))

    def find(chain: int) -> int:
        while home[chain] != chain:
            home[chain] = home[home[chain]]
            chain = home[chain]
        return chain

    for node, chain in chain_of.items():
        for operand in graph.operands[node]:
            if operand in chain_of:
                home[find(chain)] = find(chain_of[operand])
    groups: dict[tuple[int, int, bool], list[_Chain]] = {}
    for number, nodes in enumerate(chains):
        key = find(number), len(nodes), nodes[0] < graph.split
        groups.setdefault(key, []).append(nodes)
    return list(groups.values())


def _cuts(chains: Sequence[_Chain], witness: Witness, split: int) -> list[int]:
    """For each chain, the number of pairs to take from its start; the rest is from its end.

    One answer for all chains if most pairs have neither name nor origin in common: single
    agreements are chance then. Otherwise each chain may improve on the common answer.
    """
    steps = len(chains[0]) // 2
    if len(chains[0]) % 2 == 0:
        return [steps] * len(chains)  # `leaves` pairs all nodes of the chain
    losses = [_losses(chain, witness, split) for chain in chains]
    together = [(0, 0, 0, 0)] * steps
    for each in losses:
        together = [_sum(a, b) for a, b in zip(together, each, strict=True)]
    cut = _best(together, steps)
    agreeing = 0
    for chain in chains:
        for pair in _pairs(chain, cut, split):
            _, origin, name, _ = witness.of(*pair)
            agreeing += origin or name
    if 2 * agreeing < steps * len(chains):
        return [cut] * len(chains)
    return [_best(each, cut) for each in losses]


def _losses(chain: _Chain, witness: Witness, split: int) -> list[Evidence]:
    """By step the evidence lost if the pair is taken from the end of a chain, not its start."""
    ways = zip(_pairs(chain, len(chain) // 2, split), _pairs(chain, 0, split), strict=True)
    return [_sum(witness.of(*first), witness.of(*last), -1) for first, last in ways]


def _best(losses: Sequence[Evidence], default: int) -> int:
    """The cut that loses the least evidence; `default` if it is as good."""
    after: list[Evidence] = [(0, 0, 0, 0)]
    for loss in reversed(losses):
        after.append(_sum(after[-1], loss))
    after.reverse()
    best = min(range(len(after)), key=after.__getitem__)
    return best if after[best] < after[default] else default


def _sum(a: Evidence, b: Evidence, sign: int = 1) -> Evidence:
    return a[0] + sign * b[0], a[1] + sign * b[1], a[2] + sign * b[2], a[3] + sign * b[3]


def _pairs(chain: _Chain, cut: int, split: int) -> Iterator[_Pair]:
    """The first `cut` pairs from the start of a chain, then those that end at its end."""
    for step in range(len(chain) // 2):
        at = 2 * step + (step >= cut and len(chain) % 2)
        one, other = chain[at], chain[at + 1]
        yield (one, other) if one < split else (other, one)
