"""The matching of the instructions of two computations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hloopt.analysis.matching.alignment import align
from hloopt.analysis.matching.anchors import pair_by_use, pair_unique
from hloopt.analysis.matching.evidence import Witness
from hloopt.analysis.matching.graph import PairGraph
from hloopt.analysis.matching.labels import Labels, Level
from hloopt.analysis.matching.local import (
    pair_by_origin,
    pair_displaced,
    pair_local,
    pair_local_by_use,
    pair_remote,
)
from hloopt.analysis.matching.neighbours import spread, spread_choosing
from hloopt.analysis.matching.state import MatchState, unique_pairs
from hloopt.analysis.matching.twins import pair_twins
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode

_HAND_ON = (
    *(Opcode.COPY, Opcode.BITCAST, Opcode.RESHAPE, Opcode.CONVERT, Opcode.OPT_BARRIER),
    *(Opcode.DOMAIN, Opcode.ADD_DEPENDENCY),
)
"""Opcodes that hand on their first operand's value, in another place, form or type."""
_MANY = 8
"""A surplus of instructions of one opcode from which on they are looked through: fewer leave most
contexts equal."""
_MOST_ROUNDS = 30
_GUESSES = (
    *(pair_local, align, pair_local_by_use, pair_remote, spread_choosing, pair_by_use),
    *(pair_twins, pair_by_origin, pair_displaced),
)
"""Heuristics for what `pair_unique` and `spread` leave, the most certain first."""


def match_instructions(
    before: Computation,
    after: Computation,
    labels: Labels,
    known: Sequence[tuple[Instruction, Instruction]] = (),
) -> list[tuple[Instruction, Instruction]]:
    """Pair the instructions of two computations; `known` pairs are given.

    Levels of detail come in order, the most detailed first; at each level unique contexts come
    before ambiguous ones. O(n log n).
    """
    graph = PairGraph(before, after)
    if labels.classes[before] == labels.classes[after]:
        _pair_equal_values(graph, labels)
    else:
        number = {node: index for index, node in enumerate(graph.nodes)}
        for old, new in (*known, *_pairs_looking_through_copies(before, after, labels, known)):
            graph.pair(number[old], number[new])
    witness = Witness(graph, labels)
    for level in Level:
        if graph.is_open:
            _match_at(MatchState(graph, witness, labels, level))
    nodes, partner = graph.nodes, graph.partner
    return [(nodes[old], nodes[partner[old]]) for old in range(graph.split) if partner[old] >= 0]


def _pairs_looking_through_copies(
    before: Computation,
    after: Computation,
    labels: Labels,
    known: Sequence[tuple[Instruction, Instruction]],
) -> list[tuple[Instruction, Instruction]]:
    """Pairs that are certain once instructions that hand on their operand are looked through.

    Looks through opcodes of which one side has many more: a pass inserted or removed them
    everywhere, so that the contexts of all other instructions changed. O(n log n).
    """
    counts = [Counter(i.opcode for i in side.instructions) for side in (before, after)]
    hidden = [op for op in _HAND_ON if abs(counts[0][op] - counts[1][op]) >= _MANY]
    if not hidden:
        return []
    graph = PairGraph(before, after, hidden)
    number = {node: index for index, node in enumerate(graph.nodes)}
    for old, new in known:
        if old in number and new in number:
            graph.pair(number[old], number[new])
    start = {node for node, partner in enumerate(graph.partner) if partner >= 0}
    state = MatchState(graph, Witness(graph, labels), labels, Level.CORE)
    while pair_unique(state) + spread(state):
        pass
    return [
        (graph.nodes[old], graph.nodes[new])
        for old, new in enumerate(graph.partner[: graph.split])
        if new >= 0 and old not in start
    ]


def _pair_equal_values(graph: PairGraph, labels: Labels) -> None:
    """Pair instructions with unique values, in computations that compute the same."""
    values = [labels.values[node] for node in graph.nodes]
    for old, new in unique_pairs(graph, values, range(len(values))):
        graph.pair(old, new)


def _match_at(state: MatchState) -> None:
    pair_unique(state)
    pair_twins(state)
    for _ in range(_MOST_ROUNDS):
        if not state.graph.is_open:
            break
        if spread(state) + pair_unique(state):
            continue
        if not any(guess(state) for guess in _GUESSES):
            break
