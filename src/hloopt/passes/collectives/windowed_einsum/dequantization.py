"""Operands of loops that are narrow floats with a scale, dequantized in the body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloopt.analysis.replication.groups import GroupReplication
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.ir.tuples import is_only_taken_apart
from hloopt.passes.collectives.shards import with_type_of
from hloopt.passes.collectives.windowed_einsum.loops import WindowedLoop, reads_of
from hloopt.passes.rewriting.loop_elements import pass_through
from hloopt.passes.rewriting.replace import remove_unused
from hloopt.passes.rewriting.rules import Builder

_OPERANDS = (0, 1)
"""The elements of the state that are operands of the dots."""
_NARROW = ("f8e4m3fn", "f8e5m2")
_WIDE = ("bf16", "f16", "f32")
_MOVES = frozenset(
    (Opcode.BITCAST, Opcode.BROADCAST, Opcode.COPY, Opcode.RESHAPE, Opcode.TRANSPOSE)
)


@dataclass(frozen=True, slots=True)
class Dequantized:
    """A wide value that is a narrow one times or over a scale, both moved around alike."""

    value: Instruction
    """The wide value, as the loop took it."""
    convert: Instruction
    scaling: Instruction
    scale: Instruction
    """The scalar."""
    moves: Sequence[Instruction]
    """The moves of elements between the scaling and the value, in the order of the data."""

    def narrow(self, build: Builder) -> Instruction:
        """The narrow value behind the moves."""
        value = self.convert.operands[0]
        for move in self.moves:
            value = build.clone(move, [value], with_type_of(move.shape, value.shape))
        return value

    def spread(self, build: Builder, scale: Instruction, narrow: Shape) -> Instruction:
        """The scale, broadcast for a narrow value."""
        return build.fill(scale, with_type_of(narrow, self.value.shape))

    def widen(self, build: Builder, value: Instruction, spread: Instruction) -> Instruction:
        """A narrow value of any size, dequantized by a broadcast scale."""
        wide = build.clone(self.convert, [value], spread.shape)
        is_first = self.scaling.operands[0] is not self.convert
        operands = [spread, wide] if is_first else [wide, spread]
        return build.clone(self.scaling, operands, spread.shape)


def dequantized(value: Instruction) -> Dequantized | None:
    """How a value was dequantized, if it was. O(moves)."""
    moves: list[Instruction] = []
    step = value
    while step.opcode in _MOVES and step.shape.type_name == step.operands[0].shape.type_name:
        moves.insert(0, step)
        step = step.operands[0]
    if step.opcode not in (Opcode.MULTIPLY, Opcode.DIVIDE):
        return None
    orders = ((0, 1),) if step.opcode is Opcode.DIVIDE else ((0, 1), (1, 0))
    for one, other in orders:
        convert, spread = step.operands[one], step.operands[other]
        if (
            convert.opcode is Opcode.CONVERT
            and convert.operands[0].shape.type_name in _NARROW
            and convert.shape.type_name in _WIDE
            and spread.opcode is Opcode.BROADCAST
            and spread.operands[0].shape.is_scalar
        ):
            return Dequantized(value, convert, step, spread.operands[0], moves)
    return None


def operands_of(loop: Instruction) -> list[Dequantized]:
    """How both operands of a loop were dequantized.

    None if one of them was not, or neither is f8e4m3fn, which cuBLAS asks for.
    """
    (init,) = loop.operands
    if init.opcode is not Opcode.TUPLE:
        return []
    found = [dequantized(init.operands[element]) for element in _OPERANDS]
    known = [each for each in found if each is not None]
    types = {each.convert.operands[0].shape.type_name for each in known}
    return known if len(known) == len(_OPERANDS) and _NARROW[0] in types else []


def why_not(
    windowed: WindowedLoop,
    operands: Sequence[Dequantized],
    replication: GroupReplication,
    *,
    assume_equal_scales: bool,
) -> str | None:
    """The reason why the operands of a loop must be dequantized in front of it, or None."""
    loop = windowed.loop
    body, condition = loop.called
    if loop.is_root or any(
        user.opcode is not Opcode.GET_TUPLE_ELEMENT or user.tuple_index in _OPERANDS
        for user in loop.users
    ):
        return "its operands are read behind it"
    if not all(is_only_taken_apart(each.parameters[0]) for each in (body, condition)):
        return "its body or condition reads its state as a whole"
    for element in _OPERANDS:
        if reads_of(condition.parameters[0], element):
            return "its condition reads an operand"
        handed_on = False
        values = reads_of(body.parameters[0], element)
        while values:
            value = values.pop()
            for user in value.users:
                if user is body.root:
                    places = [n for n, operand in enumerate(user.operands) if operand is value]
                    if places != [element]:
                        return f"%{value.name} becomes another element of its state"
                    handed_on = True
                elif user.opcode is Opcode.COLLECTIVE_PERMUTE and windowed.gathers:
                    values.append(user)
                    scale = operands[element].scale
                    if not assume_equal_scales and not replication.holds(scale, user):
                        return f"the scale %{scale.name} may differ from device to device"
                elif not _reads_wide(user, windowed):
                    return f"%{user.name} in it reads %{value.name}"
        if not handed_on:
            return f"its trips change element {element} of its state"
    return None


def _reads_wide(user: Instruction, windowed: WindowedLoop) -> bool:
    return user.opcode is Opcode.DOT or (
        user.opcode is Opcode.DYNAMIC_SLICE and not windowed.gathers
    )


def dequantize_inside(windowed: WindowedLoop, operands: Sequence[Dequantized]) -> None:
    """Let a loop take narrow operands and their scales, and dequantize them for each dot."""
    loop = windowed.loop
    body, condition = loop.called
    (old_init,) = loop.operands
    outer = Builder(loop.parent)
    elements = list(old_init.operands)
    for element, operand in zip(_OPERANDS, operands, strict=True):
        elements[element] = operand.narrow(outer)
    shape = tuple_shape(each.shape for each in elements)
    loop.set_operands([loop.parent.add(Opcode.TUPLE, shape, elements)])
    for whole in (loop, body.parameters[0], condition.parameters[0]):
        whole.set_shape(shape)
    remove_unused([old_init])
    for element, operand in zip(_OPERANDS, operands, strict=True):
        init = loop.operands[0]
        scale = pass_through(loop, operand.scale)
        remove_unused([init])
        for read in reads_of(body.parameters[0], element):
            read.set_shape(shape.elements[element])
            _widen_reads(read, operand, scale)
    body.root.set_shape(loop.shape)


def _widen_reads(read: Instruction, operand: Dequantized, scale: Instruction) -> None:
    """Let all that reads a value, narrow from now on, or a permute of it, read it dequantized."""
    build = Builder(read.parent)
    root = read.parent.root
    values = [read]
    spread: Instruction | None = None
    while values:
        value = values.pop()
        users = [user for user in value.users if user is not root]
        permutes = [user for user in users if user.opcode is Opcode.COLLECTIVE_PERMUTE]
        others = [user for user in users if user not in permutes]
        if others:
            spread = spread or operand.spread(build, scale, value.shape)
            wide = operand.widen(build, value, spread)
            for user in others:
                user.exchange_operand(value, wide)
        for permute in permutes:
            permute.set_shape(with_type_of(permute.shape, value.shape))
            values.append(permute)
