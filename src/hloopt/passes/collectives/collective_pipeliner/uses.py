"""Uses of a value in the body of a loop: formatting, and the store for after the loop."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.diagnostics import with_article
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.passes.collectives.collective_pipeliner.counted_loop import CountedLoop, NotPipelined
from hloopt.passes.collectives.collective_pipeliner.effects import has_effect
from hloopt.passes.collectives.collective_pipeliner.markers import level_of
from hloopt.passes.collectives.collective_pipeliner.moves import marked_offset, sliced_dimension
from hloopt.passes.collectives.collective_pipeliner.options import PipelinerOptions

_FORMATTING = frozenset(
    (
        *(Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.PAD, Opcode.COLLECTIVE_PERMUTE),
        *(Opcode.CONVERT, Opcode.RESHAPE, Opcode.ALL_REDUCE, Opcode.TRANSPOSE, Opcode.BROADCAST),
        *(Opcode.ALL_GATHER, Opcode.GET_TUPLE_ELEMENT, Opcode.REDUCE, Opcode.CONCATENATE),
        *(Opcode.REDUCE_SCATTER, Opcode.BITCAST, Opcode.CUSTOM_CALL),
    )
)
_NOT_SUNK = (Opcode.GET_TUPLE_ELEMENT, Opcode.REDUCE_SCATTER)
_ELEMENTWISE = ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {Opcode.SELECT, Opcode.CLAMP, Opcode.MAP}


@dataclass(frozen=True, slots=True)
class Uses:
    """The instructions between an instruction and the end of a trip. Made by `uses_of`."""

    formatting: list[Instruction]
    """All that its value goes through, and what is copied along, operands first."""
    copied: frozenset[Instruction]
    """Of these, what its value does not go through."""
    stores: list[Instruction]
    tokens: list[Instruction]

    @property
    def ends(self) -> list[Instruction]:
        return [*self.stores, *self.tokens]


def uses_of(moved: Instruction, loop: CountedLoop, options: PipelinerOptions) -> Uses:
    """The uses of an instruction's value. Raises NotPipelined for what cannot be moved.

    O(what its value goes through, with operands).
    """
    through: dict[Instruction, None] = {}
    stores: dict[Instruction, None] = {}
    tokens: dict[Instruction, None] = {}
    waiting = [moved]
    while waiting:
        value = waiting.pop()
        for user in value.users:
            if _is_final_store(user, loop, options.level_to_operate_on):
                if [i for i, o in enumerate(user.operands) if o is value] != [1]:
                    raise NotPipelined(f"%{value.name} is not what %{user.name} stores")
                stores[user] = None
            elif user.shape.is_token and list(user.users) == [loop.root]:
                tokens[user] = None
            elif user not in through:
                _check_formatting(user, loop, options)
                through[user] = None
                waiting.append(user)
    if not stores and not tokens:
        used = "stores it for after the loop" if moved.users else "uses it"
        raise NotPipelined(f"nothing {used}")
    copied = _copied_along(through, moved)
    place = loop.position
    return Uses(
        sorted((*through, *copied), key=place.__getitem__), frozenset(copied), [*stores], [*tokens]
    )


def check_control_dependencies(
    instruction: Instruction, place: str = "it", *, hint: str = ""
) -> None:
    """Raises NotPipelined for an instruction with control dependencies."""
    for predecessor in instruction.control_predecessors:
        raise NotPipelined(f"{place} has to run after %{predecessor.name}, by control{hint}")
    for successor in instruction.control_successors:
        raise NotPipelined(f"{place} has to run before %{successor.name}, by control{hint}")


def _is_final_store(user: Instruction, loop: CountedLoop, level: int) -> bool:
    if user.opcode is not Opcode.DYNAMIC_UPDATE_SLICE or len(user.users) != 1:
        return False
    if level == 0:
        return loop.root in user.users
    offset = marked_offset(user)
    return offset is not None and level_of(offset) == level


def _check_formatting(user: Instruction, loop: CountedLoop, options: PipelinerOptions) -> None:
    if user is loop.root:
        raise NotPipelined(f"%{user.name}, the root of the body, takes it without any store")
    place = f"%{user.name}, between it and its store,"
    check_control_dependencies(user, place)
    is_sink = options.pipelining_direction == "forward-sink"
    if not _can_format(user, is_sink=is_sink, elementwise=options.pipeline_use_tree):
        raise NotPipelined(f"{place} is {with_article(user.opcode)}, which cannot be moved along")
    if not options.accepts_formatting(user):
        raise NotPipelined(
            f"{place} is {with_article(user.opcode)}, which acceptable_formatting excludes"
        )


def _can_format(user: Instruction, *, is_sink: bool, elementwise: bool) -> bool:
    opcode = user.opcode
    if is_sink and opcode in _NOT_SUNK:
        return False
    if opcode in _ELEMENTWISE and elementwise:
        return True
    if opcode is Opcode.CUSTOM_CALL:
        return not has_own_side_effect(user)
    if opcode is Opcode.DYNAMIC_UPDATE_SLICE and is_sink:
        return bool(sliced_dimension(user))  # not the first one
    return opcode in _FORMATTING


def _copied_along(through: dict[Instruction, None], moved: Instruction) -> set[Instruction]:
    """Values that others may read, too: broadcasts, their constants, indices of slices."""
    copied: set[Instruction] = set()
    for user in through:
        for operand in user.operands:
            if operand.opcode is Opcode.BROADCAST and operand not in through:
                copied.add(operand)
                copied.update(o for o in operand.operands if o.opcode is Opcode.CONSTANT)
        if user.opcode is Opcode.DYNAMIC_SLICE:
            waiting = [o for o in user.operands[1:] if o not in through and o is not moved]
            while waiting:
                value = waiting.pop()
                if value in copied:
                    continue
                _check_index(value, user)
                copied.add(value)
                waiting += [o for o in value.operands if o not in through and o is not moved]
    return copied


def _check_index(value: Instruction, user: Instruction) -> None:
    is_state = value.opcode is Opcode.PARAMETER or any(
        operand.opcode is Opcode.PARAMETER for operand in value.operands
    )
    if is_state or has_own_side_effect(value) or has_effect(value):
        why = "depends on the loop's state" if is_state else "has a side effect"
        raise NotPipelined(
            f"%{user.name}, between it and its store, has an index from %{value.name}, which {why}"
        )
