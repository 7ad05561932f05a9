"""Which computations and instructions of two modules belong together."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.ordering import stable_computation_order, stable_order


@dataclass(slots=True)
class ModuleMatch:
    """Pairs of computations and of instructions, the module before → the module after.

    Where at least half of what has an equal structure kept its name, names are trusted and count
    for more than structure: a pass that clones and edits leaves the old name on what it edited.
    Elsewhere (two lowerings of one program number everything anew) structure comes first.

    Computations that read the same in both modules get no pairs of instructions: nobody needs
    them. Near-linear in the number of instructions.
    """

    computations: dict[Computation, Computation] = field(default_factory=dict)
    instructions: dict[Instruction, Instruction] = field(default_factory=dict)
    callees: dict[Computation, Hashable] = field(default_factory=dict)
    """What stands for a computation where callers are compared: equal for two that belong
    together, and for all of one structure (modules are full of equal reducers)."""

    @classmethod
    def of(cls, before: Module, after: Module) -> ModuleMatch:
        match = cls()
        matcher = _Matcher(match)
        matcher.match_computations(before, after)
        for computation in reversed(stable_computation_order(before)):  # callers first
            partner = match.computations.get(computation)
            if partner is not None and not same_source_text(computation, partner):
                matcher.match_instructions(computation, partner)
        return match


def same_source_text(before: Computation, after: Computation) -> bool:
    """Whether two computations are as they were read and read the same. O(length of the text)."""
    if not (before.is_pristine and after.is_pristine):
        return False
    old, new = _source_text(before), _source_text(after)
    return old is not None and old == new


def _source_text(computation: Computation) -> str | None:
    source, scope = computation.module.source, computation.source_range
    return source.text[slice(*scope)] if source is not None and scope is not None else None


_Node = TypeVar("_Node", Computation, Instruction)


class _Pairing(Generic[_Node]):
    """Pairs found among the nodes before and after; a node once paired stays paired."""

    def __init__(
        self,
        before: Iterable[_Node],
        after: Iterable[_Node],
        pair: Callable[[_Node, _Node], None],
    ) -> None:
        self.before: dict[_Node, None] = dict.fromkeys(before)
        self.after: dict[_Node, None] = dict.fromkeys(after)
        self.pair_nodes: Callable[[_Node, _Node], None] = pair

    def pair(self, old: _Node, new: _Node) -> None:
        del self.before[old]
        del self.after[new]
        self.pair_nodes(old, new)

    def pair_all(self, pairs: Iterable[tuple[_Node, _Node]]) -> None:
        for old, new in pairs:
            self.pair(old, new)

    def named(self, accept: Callable[[_Node, _Node], bool]) -> list[tuple[_Node, _Node]]:
        """What has one name on both sides and is accepted."""
        by_name = {new.name: new for new in self.after}
        return [
            (old, new)
            for old in self.before
            if (new := by_name.get(old.name)) is not None and accept(old, new)
        ]

    def by_name(self, accept: Callable[[_Node, _Node], bool]) -> int:
        """Pair what has one name on both sides and is accepted; returns the number of pairs."""
        found = self.named(accept)
        self.pair_all(found)
        return len(found)

    def by_key(self, keys: Mapping[_Node, Hashable]) -> None:
        """Pair what has equal keys, in order."""
        waiting: dict[Hashable, deque[_Node]] = {}
        for old in self.before:
            waiting.setdefault(keys[old], deque()).append(old)
        for new in list(self.after):
            if group := waiting.get(keys[new]):
                self.pair(group.popleft(), new)

    def count_equal(self, keys: Mapping[_Node, Hashable]) -> int:
        """How many pairs `by_key` would find."""
        old, new = Counter(map(keys.get, self.before)), Counter(map(keys.get, self.after))
        return (old & new).total()


class _Matcher:
    """Fills a ModuleMatch."""

    def __init__(self, match: ModuleMatch) -> None:
        self.computations = match.computations
        self.instructions = match.instructions
        self.callees = match.callees

    def _pair_computations(self, old: Computation, new: Computation) -> None:
        self.computations[old] = new
        self.callees[old] = self.callees[new] = new

    def _pair_instructions(self, old: Instruction, new: Instruction) -> None:
        """Pair two instructions, and the computations they call that have no partner yet."""
        self.instructions[old] = new
        if len(old.called) != len(new.called):
            return
        for old_callee, new_callee in zip(old.called, new.called, strict=True):
            if old_callee not in self.callees and new_callee not in self.callees:
                self._pair_computations(old_callee, new_callee)

    def match_computations(self, before: Module, after: Module) -> None:
        pairing: _Pairing[Computation] = _Pairing(
            stable_computation_order(before),
            stable_computation_order(after),
            self._pair_computations,
        )
        pairing.pair(before.entry, after.entry)
        kept = pairing.by_name(same_source_text)
        if not pairing.before or not pairing.after:
            return
        keys = self._computation_structures([*pairing.before, *pairing.after])
        named = pairing.named(lambda old, new: keys[old] == keys[new])
        if 2 * (kept + len(named)) >= kept + pairing.count_equal(keys):
            pairing.pair_all(named)
        else:
            pairing.by_key(keys)
        pairing.by_name(_look_alike)
        pairing.by_key(keys)
        pairing.by_name(_always)
        for old, new in self.computations.items():
            if old in keys and keys[old] == keys.get(new):
                self.callees[old] = self.callees[new] = keys[old]

    def _computation_structures(
        self, computations: Iterable[Computation]
    ) -> dict[Computation, int]:
        """A number per computation, equal for equal structure; callees stand before callers."""
        structures: dict[Hashable, int] = {}
        result: dict[Computation, int] = {}
        callees = dict(self.callees)
        for computation in computations:
            numbers: dict[Instruction, int] = {}
            for instruction in stable_order(computation):
                key = _structure(instruction, numbers, callees)
                numbers[instruction] = structures.setdefault(key, len(structures))
            whole = ("computation", numbers[computation.root], tuple(sorted(numbers.values())))
            result[computation] = structures.setdefault(whole, len(structures))
            callees[computation] = result[computation]
        return result

    def match_instructions(self, before: Computation, after: Computation) -> None:
        old_order, new_order = stable_order(before), stable_order(after)
        pairing = _Pairing(old_order, new_order, self._pair_instructions)
        order = (*old_order, *new_order)
        are_names_trusted = self._pair_equal(pairing, order)
        if are_names_trusted:
            pairing.by_name(_same_kind)
            self._pair_by_structure(pairing, order)
            pairing.by_name(_same_opcode)
            self._pair_by_structure(pairing, order)
        else:
            pairing.by_key({i: _kind(i) for i in (*pairing.before, *pairing.after)})
        old, new = before.root, after.root
        if old in pairing.before and new in pairing.after and _same_opcode(old, new):
            pairing.pair(old, new)
        if are_names_trusted:
            pairing.by_name(_always)

    def _pair_equal(self, pairing: _Pairing[Instruction], order: Sequence[Instruction]) -> bool:
        """Pair what is equal, by name or else by structure; returns whether names are trusted."""
        named = pairing.named(_same_text)  # spares most modules the work on structures
        if 2 * len(named) < len(pairing.before):
            keys = self._structures(order)
            named = pairing.named(lambda old, new: keys[old] == keys[new])
            if 2 * len(named) < pairing.count_equal(keys):
                pairing.by_key(keys)
                return False
        pairing.pair_all(named)
        return True

    def _pair_by_structure(
        self, pairing: _Pairing[Instruction], order: Sequence[Instruction]
    ) -> None:
        if pairing.before and pairing.after:
            pairing.by_key(self._structures(order))

    def _structures(self, order: Sequence[Instruction]) -> dict[Instruction, int]:
        """A number per instruction, equal for equal structure given the pairs there are.

        `order` has the computation before, then the one after, operands before users.
        """
        structures: dict[Hashable, int] = {}
        numbers: dict[Instruction, int] = {}
        for instruction in order:
            if instruction in numbers:
                continue
            partner = self.instructions.get(instruction)
            key = partner or _structure(instruction, numbers, self.callees)
            number = numbers[instruction] = structures.setdefault(key, len(structures))
            if partner is not None:
                numbers[partner] = number
        return numbers


def _structure(
    instruction: Instruction,
    numbers: Mapping[Instruction, int],
    callees: Mapping[Computation, Hashable],
) -> Hashable:
    """What an instruction is and reads, names and metadata aside."""
    return (
        *_kind(instruction),
        tuple(numbers[operand] for operand in instruction.operands),
        tuple(callees.get(called, called) for called in instruction.called),
    )


def _kind(instruction: Instruction) -> tuple[Hashable, ...]:
    """What an instruction is, without what it reads."""
    attributes = instruction.attributes.items()
    return (
        instruction.opcode,
        instruction.shape,
        instruction.payload,
        frozenset(item for item in attributes if item[0] != "metadata"),
    )


def _look_alike(old: Computation, new: Computation) -> bool:
    if old.root.opcode is not new.root.opcode or old.root.shape is not new.root.shape:
        return False
    return [p.shape for p in old.parameters] == [p.shape for p in new.parameters]


def _same_text(old: Instruction, new: Instruction) -> bool:
    return old.text is not None and old.text == new.text


def _same_kind(old: Instruction, new: Instruction) -> bool:
    return old.opcode is new.opcode and old.shape is new.shape


def _same_opcode(old: Instruction, new: Instruction) -> bool:
    return old.opcode is new.opcode


def _always(old: object, new: object) -> bool:
    return True
