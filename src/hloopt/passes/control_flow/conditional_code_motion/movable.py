"""The boundaries that may move, by their opcodes and by what else they are."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.analysis.equality import ANNOTATIONS, Equality
from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import (
    ASYNC,
    COLLECTIVES,
    ELEMENTWISE_BINARY,
    ELEMENTWISE_UNARY,
    STARTS,
    Opcode,
)
from hloopt.passes.control_flow.conditional_code_motion.boundaries import Boundary, Position
from hloopt.passes.control_flow.conditional_code_motion.tuning import Tuning

_ALWAYS = frozenset(
    (
        *(Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER, Opcode.REDUCE, Opcode.CONSTANT),
        *(Opcode.RESHAPE, Opcode.BROADCAST, Opcode.SLICE, Opcode.PAD, Opcode.DYNAMIC_SLICE),
        *(Opcode.DYNAMIC_UPDATE_SLICE, Opcode.GATHER, Opcode.SELECT, Opcode.CLAMP),
        *((ELEMENTWISE_UNARY | ELEMENTWISE_BINARY) - {Opcode.CONVERT, Opcode.BITCAST_CONVERT}),
    )
)
_TUPLES = (Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT)
_CONVERTED = (Opcode.ALL_REDUCE, Opcode.RESHAPE, Opcode.GET_TUPLE_ELEMENT)
_COLLECTIVES_THAT_MOVE = (Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER)
_IN_PARTS = ASYNC | STARTS | {Opcode.COPY_DONE}
_CHANNELS = COLLECTIVES | {Opcode.SEND, Opcode.SEND_DONE, Opcode.RECV, Opcode.RECV_DONE}
"""Opcodes that may have a channel: devices meet in them, wherever they come from."""


class Sameness:
    """Whether the instructions of a boundary are identical in all branches."""

    def __init__(self, *, is_layout_sensitive: bool) -> None:
        self._equality = Equality(is_layout_sensitive=is_layout_sensitive)
        self._without_channel = Equality(
            is_layout_sensitive=is_layout_sensitive, ignored=ANNOTATIONS | {"channel_id"}
        )
        self.shape = self._equality.shape

    def holds(self, boundary: Boundary) -> bool:
        """Whether the same is done in all branches, to operands of equal shapes. O(operands)."""
        first, *others = boundary.instructions
        key = self._key(first)
        return all(
            other is first
            or (
                other.opcode is first.opcode
                and self._key(other) == key
                and self._equality.same_callees(first, other)
            )
            for other in others
        )

    def _key(self, instruction: Instruction) -> tuple[object, ...]:
        is_across = (
            instruction.opcode is Opcode.ALL_REDUCE and "channel_id" in instruction.attributes
        )
        equality = self._without_channel if is_across else self._equality
        payload: object = instruction.payload
        if instruction.opcode is Opcode.CONSTANT:
            payload = equality.constant(instruction)
        operands = tuple([equality.shape(operand.shape) for operand in instruction.operands])
        return is_across, equality.operation(instruction), payload, operands

    def forget(self, conditional: Instruction) -> None:
        """Compare anew what changed around a conditional."""
        for computation in (conditional.parent, *conditional.called):
            self._equality.forget(computation)


class Movability:
    """Says which boundaries may move across the border of one conditional."""

    def __init__(
        self,
        conditional: Instruction,
        sameness: Sameness,
        effects: SideEffects,
        tuning: Tuning | None,
    ) -> None:
        self._conditional = conditional
        self._sameness = sameness
        self._effects = effects
        self._tuning = tuning

    def why_not(self, boundary: Boundary) -> str | None:
        """The reason why a boundary must stay, or None where it may move."""
        instruction, position = boundary.first, boundary.position
        if instruction.opcode is Opcode.PARAMETER:
            return "it is a parameter"
        if instruction.opcode is Opcode.TUPLE and instruction is self._conditional.parent.root:
            return f"it is the result of %{instruction.parent.name}"
        if any(each.has_control_dependencies for each in boundary.instructions):
            return "it has control dependencies"
        if position is Position.OPERAND and (reason := self._why_not_operand(instruction)):
            return reason
        if instruction.opcode in _CHANNELS and position is not Position.INSIDE:
            return "it communicates, which not all devices may do in a branch"
        if instruction.opcode in _IN_PARTS or (
            instruction.opcode not in _COLLECTIVES_THAT_MOVE and self._effects.of(instruction)
        ):
            return "it has a side effect, or another part"
        if instruction.opcode is Opcode.BROADCAST and (reason := self._why_no_broadcast(boundary)):
            return reason
        return self._why_not_opcode(instruction)

    def _why_not_operand(self, instruction: Instruction) -> str | None:
        if instruction.opcode is Opcode.GET_TUPLE_ELEMENT:
            return "it only reads a tuple"
        if len(instruction.users) > 1:
            return "it has several users"
        if self._effects.of(instruction):
            return "it has a side effect"
        if instruction.opcode is Opcode.TUPLE and "sharding" in instruction.attributes:
            return "it is a tuple with a sharding"
        return None

    def _why_no_broadcast(self, boundary: Boundary) -> str | None:
        if boundary.position is Position.USER:
            return "it would make the result of the branches larger"
        if boundary.position is Position.INSIDE and not self._sameness.holds(boundary.operand(0)):
            return "what it repeats is not the same in all branches"
        return None

    def _why_not_opcode(self, instruction: Instruction) -> str | None:
        operands = instruction.operands
        source = operands[0].opcode if operands else None
        reason = None
        about: tuple[Opcode, Opcode | None] = instruction.opcode, None
        if instruction.opcode is Opcode.CONVERT:
            about = instruction.opcode, source
            if source not in _CONVERTED:
                reason = f"it may be fused with %{operands[0].name}"
        elif instruction.opcode in _TUPLES:
            about = instruction.opcode, source
            if source is Opcode.PARAMETER:
                reason = f"it belongs to the parameter %{operands[0].name}"
        elif instruction.opcode not in _ALWAYS and not _is_elementwise(instruction):
            reason = f"{instruction.opcode} is not worth moving"
        if self._tuning is None or self._tuning.tunes_weights:
            return reason
        if self._tuning.decide(about, 1, 1):
            return None
        return f"the search configuration keeps {instruction.opcode}"


def _is_elementwise(instruction: Instruction) -> bool:
    """Whether an instruction of an opcode that may be elementwise or not is elementwise."""
    rule = _SOMETIMES_ELEMENTWISE.get(instruction.opcode)
    return rule is not None and rule(instruction)


def _keeps_width(convert: Instruction) -> bool:
    source, target = convert.operands[0].shape.element_type, convert.shape.element_type
    return source is not None and target is not None and source.bits == target.bits


def _maps_all_dimensions(map_: Instruction) -> bool:
    dimensions = parse_ints(map_.attributes.get("dimensions", "{}"))
    return list(dimensions) == list(range(map_.shape.rank))


def _fuses_elementwise(fusion: Instruction) -> bool:
    return all(
        i.opcode in _ELEMENTWISE or i.opcode is Opcode.PARAMETER
        for i in fusion.called[0].instructions
    )


_ELEMENTWISE = ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {Opcode.SELECT, Opcode.CLAMP}
_SOMETIMES_ELEMENTWISE: dict[Opcode, Callable[[Instruction], bool]] = {
    Opcode.BITCAST_CONVERT: _keeps_width,
    Opcode.MAP: _maps_all_dimensions,
    Opcode.FUSION: _fuses_elementwise,
}
