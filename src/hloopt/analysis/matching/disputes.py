"""What a node computes proposes one partner, what it is used for another: which is it?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hloopt.analysis.matching.evidence import Evidence, Witness
from hloopt.analysis.matching.graph import PairGraph
from hloopt.analysis.matching.state import MatchState

_Pair = tuple[int, int]
_Chain = list[int]
"""Nodes each of which is a proposed partner of the next: by what it computes, by what it is used
for, by what it computes, …"""


def settle(state: MatchState, by_leaves: Iterable[_Pair], by_roots: Iterable[_Pair]) -> int:
    """Pair what `by_leaves` proposes; where `by_roots` disputes it, by evidence.

    A row of n equal layers of which one is gone makes a chain of 2n-1 nodes for each instruction
    of a layer: up to the layer that is gone partners compute the same, after it they are used for
    the same. Which layer that is, all chains of one length next to each other decide together,
    so that whole layers are gone; without evidence, the last. Returns how many pairs.
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
        cut = _cut(chains, state.witness, graph.split)
        for chain in chains:
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
    """The chains of proposals that begin or pass at `disputed`, by what is computed first."""
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
    """Chains of one length and side that are joined by edges, or by chains that are."""
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


def _cut(chains: Sequence[_Chain], witness: Witness, split: int) -> int:
    """How many pairs from the start of each chain speak for themselves; all without evidence."""
    steps = len(chains[0]) // 2
    if len(chains[0]) % 2 == 0:
        return steps  # one way leaves nobody alone
    lost: list[Evidence] = [(0, 0, 0, 0)] * steps  # by taking the last way at a step
    for chain in chains:
        ways = zip(_pairs(chain, steps, split), _pairs(chain, 0, split), strict=True)
        for step, (first, last) in enumerate(ways):
            a, b, c = lost[step], witness.of(*first), witness.of(*last)
            lost[step] = (
                *(a[0] + b[0] - c[0], a[1] + b[1] - c[1]),
                *(a[2] + b[2] - c[2], a[3] + b[3] - c[3]),
            )
    total = least = (0, 0, 0, 0)
    cut = steps
    for step in reversed(range(steps)):
        more = lost[step]
        total = total[0] + more[0], total[1] + more[1], total[2] + more[2], total[3] + more[3]
        if total < least:
            least, cut = total, step
    return cut


def _pairs(chain: _Chain, cut: int, split: int) -> Iterator[_Pair]:
    """The first `cut` pairs from the start of a chain, then those that end at its end."""
    for step in range(len(chain) // 2):
        at = 2 * step + (step >= cut and len(chain) % 2)
        one, other = chain[at], chain[at + 1]
        yield (one, other) if one < split else (other, one)
