"""Blocks of instructions that follow one another many times: loops that somebody unrolled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hloopt.analysis.async_operations import OWN_STARTS, SYNC_COLLECTIVES
from hloopt.analysis.calls import callees_first
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import CONTRACTIONS, EMBEDDED_CALLERS, Opcode
from hloopt.ir.ordering import post_order

_ROUNDS = 3
"""The number of operands, one behind the other, by which instructions are told apart."""
_MOST_TRIES = 8
"""Groups of a computation that are looked at, so that it stays near-linear."""
_PLUMBING = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT),
        *(Opcode.BITCAST, Opcode.RESHAPE),
    )
)
"""Opcodes that do not count as instructions of a block."""
_STARTS = frozenset(start for start, kind in OWN_STARTS.items() if kind in SYNC_COLLECTIVES)
_ANCHORS = CONTRACTIONS | SYNC_COLLECTIVES | _STARTS | {Opcode.CUSTOM_CALL}
"""Opcodes of which each block has some: chains of cheap work alone are no loops."""


@dataclass(frozen=True, slots=True)
class UnrolledLoop:
    """A block that is repeated, each time on what the time before gave."""

    anchors: tuple[Instruction, ...]
    """An instruction of each repetition, in order: each depends on the one before."""
    block: int
    """The number of instructions of a repetition, with those of calls."""

    @property
    def repeats(self) -> int:
        return len(self.anchors)

    @property
    def instructions(self) -> int:
        """The number of instructions of all repetitions."""
        return self.block * self.repeats


def unrolled_loops(module: Module, *, repeats: int, block: int) -> list[UnrolledLoop]:
    """The blocks of at least so many instructions that are repeated at least so often.

    Instructions are alike where opcode, shape and called computations are, and those of three
    operands before them. A block has what lies on ways from one link of a chain to the next, and
    what only that needs. O(instructions), 8 times at most.
    """
    labels = _Labels(module)
    return [
        found
        for order in labels.orders
        if sum(map(labels.size, order)) >= repeats * block
        for found in _in_order(order, labels, repeats, block)
    ]


class _Labels:
    """Numbers that are equal for instructions that are alike; and what calls hold."""

    def __init__(self, module: Module) -> None:
        self.of: dict[Instruction, int] = {}
        self._numbers: dict[tuple[object, ...], int] = {}
        self._bodies: dict[Computation, int] = {}
        self._sizes: dict[Computation, int] = {}
        self._with_anchor: set[Computation] = set()
        self.orders: list[list[Instruction]] = []
        """The instructions of each computation that is not fused or applied, operands first."""
        for computation in callees_first(module):
            order = post_order(computation)
            is_embedded = any(caller.opcode in EMBEDDED_CALLERS for caller in computation.callers)
            self._label(order, 0 if is_embedded else _ROUNDS)
            if not is_embedded:
                self.orders.append(order)
            self._bodies[computation] = self._number(tuple(self.of[each] for each in order))
            self._sizes[computation] = sum(map(self.size, order))
            if any(map(self.is_anchor, order)):
                self._with_anchor.add(computation)

    def size(self, instruction: Instruction) -> int:
        """The number of instructions that it is, with those that a call calls."""
        if instruction.opcode is Opcode.CALL:
            return self._sizes[instruction.called[0]]
        return int(instruction.opcode not in _PLUMBING)

    def is_anchor(self, instruction: Instruction) -> bool:
        return instruction.opcode in _ANCHORS or any(
            callee in self._with_anchor for callee in instruction.called
        )

    def _label(self, order: Sequence[Instruction], rounds: int) -> None:
        of = self.of
        for each in order:
            bodies = (self._bodies[callee] for callee in each.called)
            of[each] = self._number((each.opcode, each.shape, *bodies))
        for _ in range(rounds):
            new = [
                self._number((of[each], *(of[operand] for operand in each.operands)))
                for each in order
            ]
            of.update(zip(order, new, strict=True))

    def _number(self, key: tuple[object, ...]) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def _in_order(
    order: Sequence[Instruction], labels: _Labels, repeats: int, block: int
) -> Iterator[UnrolledLoop]:
    graph = _Graph(order)
    groups: dict[int, list[int]] = {}
    for node, instruction in enumerate(order):
        if labels.is_anchor(instruction):
            groups.setdefault(labels.of[instruction], []).append(node)
    covered = bytearray(len(order))
    tries = 0
    for group in sorted(groups.values(), key=len, reverse=True):
        members = [node for node in group if not covered[node]]
        if len(members) < repeats or tries == _MOST_TRIES:
            continue
        tries += 1
        chain = graph.longest_chain(members)
        if len(chain) < repeats:
            continue
        region = graph.between(chain[0], chain[-1])
        for node in (*region, *members):
            covered[node] = True
        size = _block_size([order[node] for node in region], len(chain) - 1, labels)
        if size >= block:
            yield UnrolledLoop(tuple(order[node] for node in chain), size)


class _Graph:
    """The instructions of a computation as numbers, each behind its operands."""

    def __init__(self, order: Sequence[Instruction]) -> None:
        number = {instruction: node for node, instruction in enumerate(order)}
        self._operands = [[number[each] for each in node.operands] for node in order]
        self._users = [0] * len(order)
        """The number of operands that each node is."""
        for operands in self._operands:
            for operand in operands:
                self._users[operand] += 1

    def longest_chain(self, members: Sequence[int]) -> list[int]:
        """The most of some nodes of which each depends on the one before. O(nodes)."""
        is_member = bytearray(len(self._operands))
        for node in members:
            is_member[node] = True
        depth = [0] * len(self._operands)
        last = [-1] * len(self._operands)
        before: dict[int, int] = {}
        for node in range(members[0], len(depth)):
            deepest, end = 0, -1
            for operand in self._operands[node]:
                if depth[operand] > deepest:
                    deepest, end = depth[operand], last[operand]
            if is_member[node]:
                before[node] = end
                deepest, end = deepest + 1, node
            depth[node], last[node] = deepest, end
        node = max(members, key=depth.__getitem__)
        chain = []
        while node >= 0:
            chain.append(node)
            node = before[node]
        return chain[::-1]

    def between(self, first: int, last: int) -> list[int]:
        """The nodes on ways from one to another, and those that nothing else needs. O(nodes)."""
        is_reached = bytearray(len(self._operands))
        is_reached[first] = True
        for node in range(first + 1, last + 1):
            is_reached[node] = any(is_reached[operand] for operand in self._operands[node])
        is_needed = bytearray(len(self._operands))
        is_needed[last] = True
        users_inside = [0] * len(self._operands)
        region = []
        for node in range(last, -1, -1):
            is_own = 0 < self._users[node] == users_inside[node]
            if is_own or (is_needed[node] and is_reached[node]):
                region.append(node)
                for operand in self._operands[node]:
                    users_inside[operand] += 1
                    is_needed[operand] = True
        return region


def _block_size(region: Sequence[Instruction], count: int, labels: _Labels) -> int:
    """The instructions of a region that are there `count` times, or a multiple of it, once each."""
    alike = Counter(labels.of[each] for each in region)
    sizes = {labels.of[each]: labels.size(each) for each in region}
    return sum(number // count * sizes[label] for label, number in alike.items())
