"""Evidence for a pair of instructions beside structure: annotations, op_name, name, number."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from hloopt.analysis.matching.graph import PairGraph
from hloopt.analysis.matching.labels import Labels
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.patterns import pattern

_OP_NAME = pattern(r'op_name="((?:[^"\\]|\\.)*)"')

Evidence = tuple[int, int, int, int]
"""Agreements (1 or 0, or sums of such) in annotations, op_name, name and parameter number; compared
in this order."""


class _Facts(NamedTuple):
    """Properties of a node beside structure; `number` is that of a parameter or tuple element."""

    annotations: int
    origin: str
    name: str
    number: str


class Witness:
    """Compares nodes by properties beside structure, which it reads once per node."""

    def __init__(self, graph: PairGraph, labels: Labels) -> None:
        self._graph = graph
        self._labels = labels
        self._known: dict[int, _Facts] = {}

    def of(self, old: int, new: int) -> Evidence:
        """The agreements of two nodes."""
        a, b = self._facts(old), self._facts(new)
        return (
            int(a.annotations == b.annotations),
            int(a.origin == b.origin != ""),
            int(a.name == b.name),
            int(a.number == b.number != ""),
        )

    def origin(self, node: int) -> str:
        """The op_name of a node."""
        return self._facts(node).origin

    def pairs(self, old: Sequence[int], new: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Pair structurally equal nodes by evidence, and those it leaves in order.

        The order is that of the numbers of parameters and tuple elements, then the given one.
        Yields as many pairs as the shorter list has nodes. O(n log n).
        """
        if len(old) == len(new) == 1:
            yield old[0], new[0]
            return
        for key in _KEYS:
            if not old or not new:
                return
            waiting: dict[Hashable, list[int]] = {}
            for node in reversed(new):
                waiting.setdefault(key(self._facts(node)), []).append(node)
            waiting.pop(None, None)
            rest: list[int] = []
            taken: set[int] = set()
            for node in old:
                group = waiting.get(key(self._facts(node)))
                if group:
                    found = group.pop()
                    taken.add(found)
                    yield node, found
                else:
                    rest.append(node)
            old, new = rest, [node for node in new if node not in taken]
        yield from zip(*(sorted(side, key=self._rank) for side in (old, new)), strict=False)

    def _rank(self, node: int) -> int:
        number = self._facts(node).number
        return int(number) if number.isdecimal() else -1

    def _facts(self, node: int) -> _Facts:
        found = self._known.get(node)
        if found is None:
            instruction = self._graph.nodes[node]
            found = self._known[node] = _Facts(
                self._labels.annotations(instruction),
                op_name(instruction),
                instruction.name,
                number_of(instruction),
            )
        return found


def number_of(instruction: Instruction) -> str:
    """The number of a parameter or tuple element; empty for other instructions."""
    if instruction.opcode is Opcode.PARAMETER:
        return instruction.payload.strip()
    if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
        return instruction.attributes["index"]
    return ""


def op_name(instruction: Instruction) -> str:
    """The op_name in the metadata as it is written, empty without one."""
    text = instruction.attribute_text
    if text is not None and "op_name" not in text:
        return ""
    match = _OP_NAME.search(instruction.attributes.get("metadata", ""))
    return match[1] if match else ""


_KEYS: tuple[Callable[[_Facts], Hashable], ...] = (
    lambda facts: (facts.annotations, facts.origin, facts.name) if facts.origin else None,
    lambda facts: (facts.annotations, facts.origin) if facts.origin else None,
    lambda facts: facts.origin or None,
    lambda facts: (facts.annotations, facts.name),
    lambda facts: facts.name,
    lambda facts: (facts.annotations, facts.number) if facts.number else None,
    lambda facts: facts.annotations,
)
"""Keys to pair nodes by, the strongest first; None if a node has no such key."""
