"""Moves: instructions that are moved together, and the store of their value."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.collectives.collective_pipeliner.counted_loop import CountedLoop, NotPipelined
from hloopt.passes.collectives.collective_pipeliner.markers import level_of
from hloopt.passes.collectives.collective_pipeliner.progressions import Progression, Progressions


@dataclass(frozen=True, slots=True, eq=False)
class Store:
    """A dynamic-update-slice, or what gives a token, whose result a trip ends with."""

    instruction: Instruction
    output: int
    """The element of the state that it ends in."""
    dimension: int | None
    """The dimension whose slices it stores; None for a token."""
    index: Progression | None
    """The indices at which it stores; None for a token."""

    @property
    def buffer(self) -> Instruction:
        """The buffer it writes into; for a token the token it takes."""
        return self.instruction.operands[-1 if self.dimension is None else 0]

    @property
    def stored(self) -> Instruction:
        """The value that is stored."""
        return self.instruction.operands[1]

    @property
    def offset(self) -> Instruction:
        """The one index that is not zero."""
        assert self.dimension is not None
        return self.instruction.operands[2 + self.dimension]


@dataclass(frozen=True, slots=True, eq=False)
class Move:
    """Instructions that are moved with all between them and their stores."""

    collectives: list[Instruction]
    formatting: list[Instruction]
    """The formatting in between, operands first."""
    stores: list[Store]
    copied: frozenset[Instruction]
    """Of `formatting`, what has other users too."""
    reuses_buffer: bool
    """Whether the operand waits where the result will be stored."""
    waits_to_the_end: bool
    """Whether only the last trip's value is stored, as each trip starts with a new buffer."""

    @property
    def through(self) -> list[Instruction]:
        """The formatting that values of the collectives go through, which nothing else reads."""
        return [i for i in self.formatting if i not in self.copied]

    @property
    def dependencies(self) -> list[Instruction]:
        """The other operands of the formatting."""
        moved = {*self.collectives, *self.formatting}
        operands = (o for formatting in self.formatting for o in formatting.operands)
        return [*dict.fromkeys(o for o in operands if o not in moved)]


def trace_store(
    loop: CountedLoop, progressions: Progressions, store: Instruction, level: int
) -> Store:
    """A dynamic-update-slice of a loop's body as a store. Raises NotPipelined."""
    dimension = sliced_dimension(store)
    if dimension is None:
        raise NotPipelined(
            f"%{store.name} does not store along one dimension: all indices but one have to be 0"
        )
    output = _output_of(loop, store)
    offset = store.operands[2 + dimension]
    index = progressions.of(offset)
    if level == 0:
        _check_buffer(loop, store, output)
    if index is None:
        raise NotPipelined(
            f"index %{offset.name} of %{store.name} does not follow from the loop counter: it is "
            "not a sum, difference or multiple of it that stays without overflow"
        )
    if level > 0:
        _check_distinct(progressions, store, dimension, index, level)
    return Store(store, output, dimension, index)


def trace_token(loop: CountedLoop, sink: Instruction) -> Store:
    """The instruction that makes a token at the end of a trip, as a store. Raises NotPipelined."""
    if not sink.operands or loop.element_of(sink.operands[-1]) is None:
        raise NotPipelined(f"%{sink.name} does not take a token of the loop's state last")
    return Store(sink, _output_of(loop, sink), None, None)


def sliced_dimension(store: Instruction) -> int | None:
    """The dimension of a dynamic-update-slice whose index is not a constant.

    None where there are several or none, or where another index is not 0.
    """
    variable: list[int] = []
    for dimension, offset in enumerate(store.operands[2:]):
        if offset.opcode is not Opcode.CONSTANT:
            variable.append(dimension)
        elif offset.payload.strip() != "0":
            return None
    has_all = len(store.operands) == 2 + store.shape.rank
    return variable[0] if len(variable) == 1 and has_all else None


def always_sinks(store: Instruction) -> bool:
    """Whether a frontend attribute says that the buffer does not matter."""
    return frontend_attribute(store, "always_sink") == "1"


def behind_barrier(buffer: Instruction) -> Instruction:
    """The operand that an optimization barrier hands on."""
    return buffer.operands[0] if buffer.opcode is Opcode.OPT_BARRIER else buffer


def marked_offset(store: Instruction) -> Instruction | None:
    """The index of a store that an earlier round marked."""
    return next((o for o in store.operands[2:] if level_of(o) is not None), None)


def _output_of(loop: CountedLoop, store: Instruction) -> int:
    """The element of the state that a store, or the stores into its result, end in."""
    value = store
    while len(value.users) == 1:
        (user,) = value.users
        if user is loop.root:
            outputs = [i for i, operand in enumerate(loop.root.operands) if operand is value]
            if len(outputs) == 1:
                return outputs[0]
            raise NotPipelined(f"%{value.name} is more than one element of %{loop.root.name}")
        if user.opcode is not Opcode.DYNAMIC_UPDATE_SLICE or user.operands[0] is not value:
            raise NotPipelined(f"%{user.name} reads what %{value.name} stores in")
        value = user
    raise NotPipelined(f"%{value.name} has several users, not the root of the body alone")


def _check_buffer(loop: CountedLoop, store: Instruction, output: int) -> None:
    """Whether nothing but the store sees what it writes into, from trip to trip."""
    buffer = store.operands[0]
    element = behind_barrier(buffer)
    index = loop.element_of(element)
    if index is None and always_sinks(store):
        if reads := loop.reads(output):
            raise NotPipelined(f"%{reads[0].name} reads in the loop what %{store.name} stores")
        return
    if index is None:
        raise NotPipelined(
            f"buffer %{buffer.name} of %{store.name} is not an element of the loop's state"
        )
    if index != output:
        raise NotPipelined(
            f"%{store.name} writes into element {index} of the state, but becomes element {output}"
        )
    for value in (element, buffer):
        other = next((u for u in value.users if u not in (store, buffer)), None)
        if other is not None:
            raise NotPipelined(f"%{other.name} reads buffer %{value.name} of %{store.name}, too")
    other = next((r for r in loop.reads(index) if r is not element), None)
    if other is not None:
        raise NotPipelined(f"%{other.name} reads the buffer of %{store.name}, too")


def _check_distinct(
    progressions: Progressions, store: Instruction, dimension: int, index: Progression, level: int
) -> None:
    """Whether each trip stores in a place of its own.

    Else what earlier rounds have moved would overwrite what is moved now, or be overwritten.
    """
    size = store.operands[1].shape.dimensions[dimension]
    # What earlier rounds moved is stored one step further per round, in the same trip.
    ends = (index.first, progressions.last(index) + level * index.step)
    room = store.shape.dimensions[dimension] - size
    if abs(index.step) < size or min(ends) < 0 or max(ends) > room:
        raise NotPipelined(f"the trips' stores %{store.name} may overlap")
