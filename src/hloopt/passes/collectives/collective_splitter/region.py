"""The instructions that work on parts: collectives, and what makes and uses their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import COLLECTIVES, CONTRACTIONS, Opcode
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.passes.collectives.collective_splitter.dimensions import (
    Needed,
    can_be_cut,
    needed,
    result_of,
)
from hloopt.passes.collectives.collective_splitter.fused import Cut, FusedCut, cut_by_operands

_FREE = frozenset((Opcode.BITCAST, Opcode.BROADCAST, Opcode.IOTA, Opcode.RESHAPE))
"""Operations whose parts cost next to nothing."""

_EMITTED = ("kLoop", "kInput")
"""The kinds of fusions that are emitted with any operations in them."""


@dataclass(frozen=True, slots=True)
class Member:
    """An instruction that works on parts."""

    cut: Cut
    operands: Needed
    dots: int
    """Dots in a row after the last collective, itself included."""
    fused: FusedCut | None = None


@dataclass(slots=True)
class Region:
    """The instructions of a computation that work on parts.

    `reach` is how many dots in a row may do so on each side of a collective; None: one before it,
    any number after it.
    """

    computation: Computation
    parts: int
    reach: int | None
    members: dict[Instruction, Member] = field(default_factory=dict)

    def add_collective(self, collective: Instruction, dimension: int) -> None:
        """Let a collective, and what makes its operand, work on parts."""
        self._add_all(self._producers(collective, dimension))
        self.members[collective] = Member(dimension, (dimension,), 0)

    def dimension_for(self, collective: Instruction) -> int | None:
        """The dimension to cut a collective along: that of its operand if this is in parts already.

        Else one along which most of what makes and uses it can work on parts, the most major of
        those by the layout; None where nothing can.
        """
        (operand,) = collective.operands
        shape, parts = collective.shape, self.parts
        found = [
            dimension
            for dimension in reversed(shape.layout.minor_to_major)
            if needed(collective, dimension, parts) is not None
        ]
        made = self.members.get(operand)
        if made is not None and isinstance(made.cut, int) and made.cut in found:
            return made.cut
        counts = {dimension: self._gain(collective, dimension) for dimension in found}
        best = max(counts.values(), default=0)
        return next((dimension for dimension in found if best and counts[dimension] == best), None)

    def add_user(self, user: Instruction) -> None:
        """Let a user of parts work on parts, if it can."""
        member = self._user(user, self.members)
        if member is None or (self.reach is not None and member.dots > self.reach):
            return
        if self._sliced_bytes(user, member) <= self._read_bytes(user):
            self._add_all({user: member, **self._free_operands(user, member)})

    def _sliced_bytes(self, user: Instruction, member: Member) -> int:
        """The bytes of what has to be sliced for a user, beside what it slices itself."""
        if slices_inside(user):
            return 0
        return sum(
            shape_bytes(operand.shape)
            for operand, dimension in zip(user.operands, member.operands, strict=True)
            if dimension is not None
            and operand.opcode not in _FREE
            and (operand not in self.members or self.members[operand].cut != dimension)
        )

    def _read_bytes(self, user: Instruction) -> int:
        return sum(shape_bytes(o.shape) for o in user.operands if o in self.members)

    def _add_all(self, members: Mapping[Instruction, Member]) -> None:
        for value, member in members.items():
            self.members.setdefault(value, member)

    def _gain(self, collective: Instruction, dimension: int) -> int:
        """How many producers and users of a collective can work on parts of it."""
        made = self._producers(collective, dimension)
        count = sum(value.opcode not in _FREE for value in made)
        known = {collective: Member(dimension, (dimension,), 0)}
        waiting = [collective]
        while waiting:
            for user in waiting.pop().users:
                member = self._user(user, known)
                if member is None:
                    continue
                if user.opcode in _FREE:
                    known[user] = member
                    waiting.append(user)
                else:
                    count += 1
        return count

    def _user(self, user: Instruction, members: Mapping[Instruction, Member]) -> Member | None:
        """A user of parts as one that works on parts; None where it cannot."""
        if not _may_join(user):
            return None
        cut = {o: members[o].cut for o in user.operands if o in members}
        dots = max(members[o].dots for o in cut)
        if user.opcode is Opcode.GET_TUPLE_ELEMENT:
            (whole,) = cut.values()
            assert isinstance(whole, tuple)
            return Member(whole[user.tuple_index], (None,), dots)
        dots += has_dot(user)
        if user.opcode is Opcode.FUSION:
            pairs = zip(user.called[0].parameters, user.operands, strict=True)
            known = {inner: along for inner, o in pairs if isinstance(along := cut.get(o), int)}
            return _fusion(user, known, self.parts, dots)
        dimension = cut_by_operands(user, cut, self.parts)
        if dimension is None:
            return None
        return _plain(user, dimension, self.parts, dots)

    def _producers(self, collective: Instruction, dimension: int) -> dict[Instruction, Member]:
        """Producers of the operand of a collective that can work on parts, up to so many dots."""
        found: dict[Instruction, Member] = {}
        stack = [(collective.operands[0], dimension, self.reach or 1)]
        while stack:
            value, cut, left = stack.pop()
            if value in found or value in self.members:
                continue
            is_inside = all(u is collective or u in found for u in value.users)
            if not is_inside and value.opcode not in _FREE:
                continue
            member = self._producer(value, cut)
            if member is None:
                continue
            found[value] = member
            left -= has_dot(value)
            if left == 0:
                continue
            for operand, each in zip(value.operands, member.operands, strict=True):
                if each is not None:
                    stack.append((operand, each, left))
        return found

    def _producer(self, value: Instruction, dimension: int) -> Member | None:
        if not _may_join(value) or value.shape.is_tuple:
            return None
        if value.opcode is Opcode.FUSION:
            return _fusion(value, {value.called[0].root: dimension}, self.parts, 0)
        return _plain(value, dimension, self.parts, 0)

    def _free_operands(self, user: Instruction, member: Member) -> dict[Instruction, Member]:
        """Operands that are made in parts at no cost."""
        found: dict[Instruction, Member] = {}
        stack = list(zip(user.operands, member.operands, strict=True))
        while stack:
            value, dimension = stack.pop()
            if dimension is None or value.opcode not in _FREE or value in self.members:
                continue
            made = self._producer(value, dimension)
            if made is not None and value not in found:
                found[value] = made
                stack += zip(value.operands, made.operands, strict=True)
        return found


def has_dot(instruction: Instruction) -> bool:
    """Whether an instruction is a dot, or a fusion with one."""
    if instruction.opcode is Opcode.FUSION:
        return any(inner.opcode in CONTRACTIONS for inner in instruction.called[0].instructions)
    return instruction.opcode in CONTRACTIONS


def slices_inside(instruction: Instruction) -> bool:
    """Whether parts of an instruction can slice its operands themselves: fusions in loops."""
    return instruction.opcode is Opcode.FUSION and fusion_kind_of(instruction) in _EMITTED


def _may_join(instruction: Instruction) -> bool:
    """Whether an instruction may work on parts, whatever it computes."""
    if instruction.has_control_dependencies or instruction.opcode in COLLECTIVES:
        return False
    if has_own_side_effect(instruction) or "output_to_operand_aliasing" in instruction.attributes:
        return False
    if instruction.shape.is_tuple and instruction.opcode is not Opcode.FUSION:
        return False
    if instruction.shape.is_tuple:
        taken_apart = all(u.opcode is Opcode.GET_TUPLE_ELEMENT for u in instruction.users)
        joins = not any(u.has_control_dependencies for u in instruction.users)
        return taken_apart and joins and not instruction.is_root
    return True


def _fusion(
    fusion: Instruction, known: Mapping[Instruction, int], parts: int, dots: int
) -> Member | None:
    inside = FusedCut(fusion.called[0], parts)
    if any(operand.shape.is_tuple for operand in fusion.operands) or not inside.spread(known):
        return None
    return Member(inside.result, inside.operands, dots, inside)


def _plain(value: Instruction, dimension: int, parts: int, dots: int) -> Member | None:
    if value.opcode is Opcode.PARAMETER or not can_be_cut(result_of(value), dimension, parts):
        return None
    operands = needed(value, dimension, parts)
    return None if operands is None else Member(dimension, operands, dots)
