"""Memory spaces in layouts."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.analysis.dataflow import Dataflow, Position
from hloopt.analysis.dataflow.slots import slots_of
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.shapes.entry_layout import format_entry_layout, parse_entry_layout
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.memory.buffers import Buffer, Buffers
from hloopt.memory_space.program import Program

_SOURCE = 2
"""The slot of a copy-start that states the shape of its source."""


def color(module: Module, positions: Iterable[Position], space: int) -> None:
    """Put the buffers at some positions into a memory space, at all their positions.

    O(slots of the module).
    """
    flow = Dataflow.of(module)
    buffers = Buffers.of(flow)
    values = {flow.held[p.instruction][p.slot] for p in positions}
    colored = {other for value in values for other in buffers.of_value[value].values}
    for computation in flow.scope.orders:
        for instruction in computation.instructions:
            held = flow.held[instruction]
            slots = [s for s, value in enumerate(held) if value in colored]
            if slots:
                _put(instruction, slots, space)


def reset_parameter(program: Program, buffer: Buffer) -> None:
    """Put a parameter of the entry, and what only passes it on, back into default memory."""
    flow = program.flow
    for value in buffer.values:
        for position in flow.positions(value):
            instruction = position.instruction
            if instruction in instruction.parent:
                _put(instruction, [position.slot], 0)
                for user in instruction.users:
                    if user.opcode is Opcode.COPY_START:
                        _put(user, [_SOURCE], 0)
            if instruction.opcode is Opcode.PARAMETER and instruction.parent.is_entry:
                _reset_entry_layout(instruction, position.slot)


def _put(instruction: Instruction, slots: list[int], space: int) -> None:
    shape = _in_space(instruction.shape, slots, space)
    if shape != instruction.shape:
        instruction.set_shape(shape)


def _reset_entry_layout(parameter: Instruction, slot: int) -> None:
    """Let the header say that a part of a parameter is in default memory, if it says anything."""
    module, name = parameter.parent.module, "entry_computation_layout"
    if name in module.attributes:
        parameters, result = parse_entry_layout(module.attributes[name])
        number = parameter.parameter_number
        parameters[number] = _in_space(parameters[number], [slot], 0)
        module.set_attribute(name, format_entry_layout(parameters, result))


def _in_space(shape: Shape, slots: list[int], space: int) -> Shape:
    if not shape.is_tuple:
        return shape.with_memory_space(space)
    starts = slots_of(shape).element_starts
    elements = []
    for number, first in enumerate(starts[:-1]):
        inner = [slot - first for slot in slots if first <= slot < starts[number + 1]]
        element = shape.elements[number]
        elements.append(_in_space(element, inner, space) if inner else element)
    return tuple_shape(elements)
