"""Making the leaves low that were decided to be."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from hloopt.analysis.dataflow import slots_of
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.ordering import repair_schedule
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.pass_framework.base import PassContext
from hloopt.passes.precision.bfloat16_propagation.borders import WITH_OWN_VALUES
from hloopt.passes.rewriting.deep_copy import deep_copy
from hloopt.passes.simplification.dce import DeadCodeElimination
from hloopt.passes.simplification.tuple_simplifier import TupleSimplifier
from hloopt.verifier.instruction_rules import KEEPS_PRECISION

if TYPE_CHECKING:
    from hloopt.interpreter.values import Value


def make_low(module: Module, low: Mapping[Instruction, Collection[int]], type_name: str) -> None:
    """Give leaves the type of this name, and converts to roots that do not follow their fusion.

    O(leaves of what changes, users).
    """
    for instruction, slots in low.items():
        shape = _with_leaves(instruction.shape, slots, type_name)
        if instruction.opcode is Opcode.CONSTANT:
            instruction.set_payload(_converted_literal(instruction, shape))
        instruction.set_shape(shape)
    for owner, slots in low.items():
        if owner.opcode in WITH_OWN_VALUES:
            kept = set(slots) - set(low.get(owner.called[0].root, ()))
            _convert_root(owner, kept, type_name)
    beside = dict.fromkeys(low)
    beside.update(dict.fromkeys(user for instruction in low for user in instruction.users))
    for instruction in beside:
        if instruction.opcode in KEEPS_PRECISION and instruction.shape.is_array:
            _convert_operands(instruction)


def clean_up(module: Module) -> None:
    """Remove converts that change nothing, tuples that are taken apart, and dead code. Linear."""
    for computation in module.computations.values():
        for convert in [i for i in computation.instructions if i.opcode is Opcode.CONVERT]:
            if convert.shape is convert.operands[0].shape:
                convert.replace_all_uses_with(convert.operands[0])
    repair_schedule(module.computations.values())
    TupleSimplifier().run(module, PassContext(wants_remarks=False))
    DeadCodeElimination().run(module, PassContext(wants_remarks=False))


def _with_leaves(shape: Shape, slots: Collection[int], type_name: str) -> Shape:
    """A shape with other arrays in some slots. O(slots of the shape)."""
    if not shape.is_tuple:
        return shape.with_element_type(type_name)
    parts = slots_of(shape).parts
    done: list[Shape] = []  # the elements that wait for their tuple, the first one on top
    for slot in range(len(parts) - 1, -1, -1):
        part = parts[slot]
        if part.is_tuple:
            count = len(part.elements)
            elements = done[len(done) - count :][::-1]
            del done[len(done) - count :]
            done.append(tuple_shape(elements))
        else:
            done.append(part.with_element_type(type_name) if slot in slots else part)
    return done[0]


def _converted_literal(constant: Instruction, shape: Shape) -> str:
    """The literal of a constant for another shape; values that were left out stay so."""
    if ELIDED in constant.payload:
        return constant.payload
    from hloopt.interpreter.literals import literal_text, literal_value

    value = literal_value(constant.payload, constant.shape)
    return literal_text(_converted(value, shape), shape)


def _converted(value: Value, shape: Shape) -> Value:
    from hloopt.interpreter.values import dtype_of_shape

    if shape.is_tuple:
        return tuple(map(_converted, value, shape.elements))
    return value.astype(dtype_of_shape(shape))


def _convert_root(owner: Instruction, slots: Collection[int], type_name: str) -> None:
    """Let the computation of a fusion or scan give leaves of this type by converts."""

    def convert(value: Instruction) -> Instruction:
        return value.parent.add(Opcode.CONVERT, value.shape.with_element_type(type_name), [value])

    body = owner.called[0]
    body.set_root(deep_copy(body.root, slots, convert)[0])


def _convert_operands(instruction: Instruction) -> None:
    """Let what only passes elements on have operands of its own floating-point type."""
    kind = instruction.shape.element_type
    for number, operand in enumerate(instruction.operands):
        theirs = operand.shape.element_type
        if theirs is not kind and theirs is not None and theirs.is_floating:
            shape = operand.shape.with_element_type(instruction.shape.type_name)
            converted = instruction.parent.add(Opcode.CONVERT, shape, [operand])
            instruction.replace_operand(number, converted)
