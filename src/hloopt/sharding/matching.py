"""Match a partitioned program with the program for all devices that it was made of."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first
from hloopt.sharding.likeness import UNLIKE, Likeness

_THROUGH = 4
"""Instructions without a counterpart that are looked through for an operand."""
_MOST = 32
"""Users of a value that are looked at, so that a value with thousands of them costs no more."""


@dataclass(slots=True)
class Matching:
    """The instruction of the program (before) that each partitioned one (after) stands for.

    Built in O(instructions + operands).
    """

    main: dict[Instruction, Instruction] = field(default_factory=dict)
    """The instructions that do the work of one of the program."""
    origin: dict[Instruction, Instruction] = field(default_factory=dict)
    """Beside them the partitioner's own, which move or mask the value of their origin."""
    images: dict[Instruction, Instruction] = field(default_factory=dict)
    """The first main instruction of each of the program."""
    order: dict[Instruction, int] = field(default_factory=dict)
    """Numbers of the program's instructions in the order in which the partitioner visits them."""
    partners: dict[Computation, Computation] = field(default_factory=dict)
    """The computation of the program that a partitioned one was made of."""
    device_dependent: set[Instruction] = field(default_factory=set)
    """Values computed from the number of the device alone or with others."""

    @classmethod
    def of(cls, before: Module, after: Module, likeness: Likeness) -> Matching:
        found = cls()
        for computation in before.computations.values():
            visited = depth_first(computation.instructions, lambda i: i.operands)
            found.order.update((instruction, n) for n, instruction in enumerate(visited))
        waiting = [(before.entry, after.entry)]
        for left, right in waiting:  # grows
            if right not in found.partners:
                found.partners[right] = left
                _Matcher(found, likeness, left, right).run()
                waiting += found._called_pairs(right)
        return found

    def _called_pairs(self, computation: Computation) -> Iterator[tuple[Computation, Computation]]:
        """Computations that matched instructions call, in pairs."""
        for instruction in computation.instructions:
            if instruction.called and (own := self.main.get(instruction)) is not None:
                yield from zip(own.called, instruction.called, strict=False)


class _Users:
    """The users of a value by opcode, and by opcode and metadata where there are many."""

    def __init__(self, value: Instruction, likeness: Likeness) -> None:
        self._likeness = likeness
        self._all = list(value.users)
        self._by_opcode: dict[Opcode, list[Instruction]] = {}
        for user in self._all:
            self._by_opcode.setdefault(user.opcode, []).append(user)
        self._by_place: dict[Hashable, list[Instruction]] = {}
        self._begin: dict[Opcode | None, int] = {}

    def candidates(
        self, instruction: Instruction, images: Mapping[Instruction, Instruction]
    ) -> Iterator[Instruction]:
        """Users with the opcode of an instruction: of many those with its metadata, and the first
        that have no image yet."""
        users = self._by_opcode.get(instruction.opcode, [])
        if len(users) <= _MOST:
            yield from users
            return
        if not self._by_place:
            for user in self._all:
                key = user.opcode, self._likeness.place(user)
                self._by_place.setdefault(key, []).append(user)
        key = instruction.opcode, self._likeness.place(instruction)
        yield from self._by_place.get(key, ())[:_MOST]
        yield from islice(self._first(instruction.opcode, users, images), _MOST)

    def without_image(self, images: Mapping[Instruction, Instruction]) -> Iterator[Instruction]:
        """The users that have no image yet, in order."""
        return self._first(None, self._all, images)

    def _first(
        self,
        key: Opcode | None,
        users: Sequence[Instruction],
        images: Mapping[Instruction, Instruction],
    ) -> Iterator[Instruction]:
        """Those without an image. What has one keeps it, so its beginning is passed over once."""
        begin = self._begin.get(key, 0)
        while begin < len(users) and users[begin] in images:
            begin += 1
        self._begin[key] = begin
        return (user for user in users[begin : begin + 2 * _MOST] if user not in images)


class _Matcher:
    """Matches a pair of computations, operands before users."""

    def __init__(
        self, found: Matching, likeness: Likeness, before: Computation, after: Computation
    ) -> None:
        self._found = found
        self._likeness = likeness
        self._before = before
        self._after = after
        self._indices: dict[Instruction, _Users] = {}
        self._without_operands = likeness.without_operands(before)

    def run(self) -> None:
        for instruction in depth_first(self._after.instructions, lambda i: i.operands):
            self._match(instruction)

    def _match(self, instruction: Instruction) -> None:
        found = self._found
        scored = [(self._score(instruction, own), own) for own in self._candidates(instruction)]
        best, own = max(scored, key=lambda pair: pair[0], default=(0.0, instruction))
        if best > 0:
            found.main[instruction] = found.origin[instruction] = own
            found.images.setdefault(own, instruction)
            return
        if instruction.opcode is Opcode.PARTITION_ID or not found.device_dependent.isdisjoint(
            instruction.operands
        ):
            found.device_dependent.add(instruction)
        origin = self._inherited(instruction)
        if origin is not None:
            found.origin[instruction] = origin

    def _candidates(self, instruction: Instruction) -> Iterator[Instruction]:
        if not instruction.operands:
            key = self._likeness.key(instruction, instruction.shape.dimensions)
            yield from self._without_operands.get(key, ())[:_MOST]
            return
        seen: set[Instruction] = set()
        for operand in dict.fromkeys(instruction.operands):
            origin = self._found.origin.get(operand)
            if origin is None:
                continue
            for user in self._users(origin, instruction):
                if user not in seen:
                    seen.add(user)
                    yield user

    def _users(self, origin: Instruction, instruction: Instruction) -> Iterator[Instruction]:
        """Users of a value with the opcode of an instruction, also through instructions that have
        no counterpart."""
        waiting = [(origin, 0)]
        for value, depth in waiting:  # grows
            index = self._index_of(value)
            yield from index.candidates(instruction, self._found.images)
            if depth < _THROUGH and len(waiting) < _MOST:
                some = islice(index.without_image(self._found.images), _MOST)
                waiting += [(user, depth + 1) for user in some]

    def _index_of(self, value: Instruction) -> _Users:
        if value not in self._indices:
            self._indices[value] = _Users(value, self._likeness)
        return self._indices[value]

    def _score(self, instruction: Instruction, own: Instruction) -> float:
        score = self._likeness.score(instruction, own)
        if score <= UNLIKE or len(instruction.operands) != len(own.operands):
            return UNLIKE
        score -= 3.0 * (own in self._found.images)
        for mine, other in zip(instruction.operands, own.operands, strict=True):
            origin = self._found.origin.get(mine)
            if origin is None:
                score -= 2.0 * (mine in self._found.device_dependent)
            elif origin is other:
                score += 2.0
            else:
                score += 1.0 if self._is_behind(origin, other) else -3.0
        return score

    def _is_behind(self, origin: Instruction, value: Instruction) -> bool:
        """Whether `value` is made of `origin` by instructions that have no counterpart."""
        for _ in range(_THROUGH):
            if not value.operands or value in self._found.images:
                return False
            value = value.operands[0]
            if value is origin:
                return True
        return False

    def _inherited(self, instruction: Instruction) -> Instruction | None:
        """The origin of a value that the partitioner moves, pads or masks: the last visited."""
        known = [
            origin
            for operand in instruction.operands
            if (origin := self._found.origin.get(operand)) is not None
        ]
        data = [origin for origin in known if origin.opcode is not Opcode.CONSTANT]
        return max(data or known, key=self._found.order.__getitem__, default=None)
