"""The instructions of a program that may have made a collective, each with a score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.sharding.likeness import Likeness
from hloopt.sharding.matching import Matching
from hloopt.sharding.roles import EXPANDED, HEAVY, IN_PLACE, SUMMING, SUMS
from hloopt.sharding.shapes import DeviceShapes, Dimensions, agree
from hloopt.sharding.wrapping import concatenation_of

_FAR = 64
"""Instructions of the partitioner looked through for users that were in the program."""
_BACK = 16
"""Steps along first operands, from a collective to what it was computed from."""
_WRITTEN = 20.0
_NOT_MAKERS = frozenset((Opcode.PARAMETER, Opcode.TUPLE, Opcode.WHILE, Opcode.CONDITIONAL))


class Role(StrEnum):
    """The connection of a candidate with a collective."""

    SOURCE = "source"
    """Its value, or a part of it, is what the collective moves."""
    SINK = "sink"
    """It reads what the collective moved."""
    BETWEEN = "between"
    """It is computed from the source and has no counterpart in the partitioned program."""
    WRITTEN = "written"
    """It is a collective of the program itself."""


@dataclass(slots=True)
class Candidate:
    """An instruction of the program that may have made a collective."""

    instruction: Instruction
    role: Role
    score: float


class Candidates:
    """Finds the candidates of collectives of a partitioned program."""

    def __init__(
        self,
        matching: Matching,
        likeness: Likeness,
        shapes: DeviceShapes,
        *,
        tells_visited: bool,
    ) -> None:
        """`tells_visited`: a collective has the metadata of the instruction that made it, as up to
        jaxlib 0.10; else it has that of its operand."""
        self._matching = matching
        self._likeness = likeness
        self._shapes = shapes
        self._tells_visited = tells_visited

    def of(self, collective: Instruction) -> list[Candidate]:
        """The candidates, each instruction once. O(1): bounded walks."""
        written = self._matching.main.get(collective)
        if written is not None:
            return [Candidate(written, Role.WRITTEN, _WRITTEN)]
        anchor = self.anchor(collective)
        if anchor is None:
            return []
        found: dict[Instruction, Candidate] = {}
        for candidate in self._found(collective, anchor):
            join = concatenation_of(candidate.instruction)
            candidate.instruction = join or candidate.instruction
            before = found.get(candidate.instruction)
            if before is None or candidate.score > before.score:
                found[candidate.instruction] = candidate
        for candidate in found.values():
            candidate.score += self._by_metadata(collective, candidate.instruction)
        return list(found.values())

    def anchor(self, collective: Instruction) -> Instruction | None:
        """The collective, or what runs it, in a computation that has a counterpart."""
        at = collective
        while at.parent not in self._matching.partners:
            caller = next(iter(at.parent.callers), None)
            if caller is None:
                return None
            at = caller
        return at

    def sources(self, anchor: Instruction) -> list[Instruction]:
        """The instructions of the program whose values an instruction of the partitioner reads."""
        origin = self._matching.origin
        known = dict.fromkeys(origin[o] for o in anchor.operands if o in origin)
        return [o for o in known if o.opcode is not Opcode.CONSTANT] or list(known)

    # -- where candidates are -------------------------------------------------------------------

    def _found(self, collective: Instruction, anchor: Instruction) -> Iterator[Candidate]:
        own = self._matching.main.get(anchor)
        if own is not None:
            yield Candidate(own, Role.SOURCE, 3.0)
        sources = self.sources(anchor)
        for source in sources:
            yield Candidate(source, Role.SOURCE, self._source_score(source, anchor, collective))
            maker = source.operands[0] if source.opcode is Opcode.GET_TUPLE_ELEMENT else None
            if maker is not None and maker.opcode not in _NOT_MAKERS:
                score = self._source_score(maker, anchor, collective) + 0.5
                unknown = "sharding" not in maker.attributes
                yield Candidate(maker, Role.SOURCE, score + 2.0 * unknown)
        sinks, kinds = self._behind(anchor)
        first = min(sinks, key=self._position, default=None)
        for sink in sinks:
            score = 2.0 if sink is first else 0.0
            yield Candidate(sink, Role.SINK, score + self._need(sink, sources))
        between = list(self._between(sources, first))
        next_visited = min(between, key=self._position, default=None)
        for each in between:
            score = 1.0 + (each.opcode in EXPANDED) + 0.5 * (each is next_visited)
            score += any(user in sinks for user in each.users)
            yield Candidate(each, Role.BETWEEN, score)
        for source in sources:
            if heavy := _maker_of_kind(source, kinds):
                yield Candidate(heavy, Role.SOURCE, 4.0)

    def _position(self, instruction: Instruction) -> int:
        return self._matching.order[instruction]

    def _behind(self, anchor: Instruction) -> tuple[list[Instruction], set[Opcode]]:
        """The first users that were in the program, and the heavy opcodes on the way to them."""
        matching = self._matching
        found: dict[Instruction, None] = {}
        kinds: set[Opcode] = set()
        seen = {anchor}
        waiting = [anchor]
        for value in waiting:  # grows
            for user in value.users:
                if len(waiting) > _FAR:
                    return list(found), kinds
                if user in seen:
                    continue
                seen.add(user)
                main = matching.main.get(user)
                if main is not None:
                    found[main] = None
                if main is None or (matching.images[main] is not user and user.opcode in HEAVY):
                    waiting.append(user)
                    if user.opcode in HEAVY:
                        kinds.add(user.opcode)
        return list(found), kinds

    def _between(
        self, sources: Sequence[Instruction], sink: Instruction | None
    ) -> Iterator[Instruction]:
        last = None if sink is None else self._position(sink)
        waiting = list(sources)
        seen = set(waiting)
        for value in waiting:  # grows
            for user in value.users:
                if len(waiting) > _BACK:
                    return
                if user in seen or user in self._matching.images:
                    continue
                if last is None or self._position(user) <= last:
                    seen.add(user)
                    waiting.append(user)
                    yield user

    # -- scores ---------------------------------------------------------------------------------

    def _by_metadata(self, collective: Instruction, own: Instruction) -> float:
        place, other = self._likeness.place(collective), self._likeness.place(own)
        if place is None or other is None or not self._tells_visited:
            return 0.0
        if place == other:
            return 4.0
        return -1.0 if place[0] == other[0] else -4.0

    def _source_score(
        self, source: Instruction, anchor: Instruction, collective: Instruction
    ) -> float:
        """How likely a collective is part of computing a value, rather than of using it."""
        if source.opcode is Opcode.GET_TUPLE_ELEMENT:
            whole = self._shapes.element(source.operands[0], source.tuple_index)
            return -2.0 if agree(whole, self._shapes.told(source)) else 3.0
        image = self._matching.images.get(source)
        is_in_place = source.opcode in IN_PLACE
        if not source.operands or (is_in_place and image is None):
            return -4.0
        is_sum = collective.opcode in SUMS
        if is_sum and source.opcode in SUMMING:
            return 4.0
        if image is None:
            return 1.0
        parts = self._shapes.leaves(source)
        made = tuple(leaf.dimensions for leaf in image.shape.leaves())
        is_finished = made == parts or _passes(anchor, image, parts, is_sum=is_sum)
        if is_finished:
            return -4.0 if is_in_place else -2.0
        return 3.0

    def _need(self, sink: Instruction, sources: Sequence[Instruction]) -> float:
        """Whether what is computed in place needs another sharding of one of its operands."""
        if sink.opcode not in IN_PLACE:
            return 0.0
        own = self._shapes.told(sink)
        read = False
        for number, operand in enumerate(sink.operands):
            if operand in sources:
                read = True
                wanted = self._shapes.element(sink, number) if sink.shape.is_tuple else own
                if not agree(self._shapes.told(operand), wanted):
                    return 1.0
        return -3.0 if read or sink.shape.is_tuple else 0.0


def _passes(
    anchor: Instruction, image: Instruction, parts: Sequence[Dimensions], *, is_sum: bool
) -> bool:
    """Whether a value on the way to a collective already has the dimensions of the result."""
    value = anchor.operands[0]
    for _ in range(_BACK):
        if value is image or not value.operands:
            return False
        if value.shape.dimensions in parts and not (is_sum and value.opcode in SUMS):
            return True
        value = value.operands[0]
    return False


def _maker_of_kind(source: Instruction, kinds: set[Opcode]) -> Instruction | None:
    """The nearest ancestor of a kind that the partitioner makes more of behind a value."""
    at = source
    for _ in range(4):
        if at.opcode in kinds:
            return at
        if not at.operands:
            return None
        at = at.operands[0]
    return None
