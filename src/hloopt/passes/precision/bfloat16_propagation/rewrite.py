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
from hloopt.passes.precision.bfloat16_propagation.borders import (
    OF_ONE_TYPE,
    WITH_OWN_VALUES,
    is_alone,
)
from hloopt.passes.precision.bfloat16_propagation.fixed import is_fixed
from hloopt.passes.rewriting.deep_copy import deep_copy
from hloopt.passes.simplification.dce import DeadCodeElimination
from hloopt.passes.simplification.tuple_simplifier import TupleSimplifier

if TYPE_CHECKING:
    from hloopt.interpreter.values import Value


def make_low(low: Mapping[Instruction, Collection[int]], type_name: str) -> None:
    """Give leaves the type of this name, with converts where something cannot follow.

    These are fixed results that a computation returns, roots that differ from what their fusion
    gives, and operands of what has a single type. O(leaves of what changes, users).
    """
    fixed = dict.fromkeys(instruction for instruction in low if is_fixed(instruction))
    for instruction, slots in low.items():
        if instruction not in fixed:
            _change(instruction, slots, type_name)
    for instruction in fixed:
        users = list(instruction.users)
        result = _with_converts(instruction, low[instruction], type_name)
        for user in users:
            user.exchange_operand(instruction, result)
        if instruction.is_root:
            instruction.parent.set_root(result)
    for owner, slots in low.items():
        if owner.opcode in WITH_OWN_VALUES:
            body = owner.called[0]
            given = slots_of(body.root.shape).parts
            kept = [slot for slot in slots if given[slot].type_name != type_name]
            body.set_root(_with_converts(body.root, kept, type_name))
    beside = dict.fromkeys(low)
    beside.update(dict.fromkeys(user for instruction in low for user in instruction.users))
    for instruction in beside:
        if instruction.opcode in OF_ONE_TYPE:
            _convert_operands(instruction)


def clean_up(module: Module) -> None:
    """Remove converts that change nothing, tuples that are taken apart, and dead code. Linear."""
    for computation in module.computations.values():
        if is_alone(computation):
            continue
        for convert in [i for i in computation.instructions if i.opcode is Opcode.CONVERT]:
            if convert.shape is convert.operands[0].shape:
                convert.replace_all_uses_with(convert.operands[0])
    repair_schedule(module.computations.values())
    TupleSimplifier().run(module, PassContext(wants_remarks=False))
    DeadCodeElimination().run(module, PassContext(wants_remarks=False))


def _change(instruction: Instruction, slots: Collection[int], type_name: str) -> None:
    shape = _with_leaves(instruction.shape, slots, type_name)
    if instruction.opcode is Opcode.CONSTANT:
        instruction.set_payload(_converted_literal(instruction, shape))
    instruction.set_shape(shape)


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


def _with_converts(value: Instruction, slots: Collection[int], type_name: str) -> Instruction:
    """A value with leaves in some slots converted to this type; itself where there are none."""

    def convert(leaf: Instruction) -> Instruction:
        return leaf.parent.add(Opcode.CONVERT, leaf.shape.with_element_type(type_name), [leaf])

    return deep_copy(value, slots, convert)[0]


def _convert_operands(instruction: Instruction) -> None:
    """Let what only passes elements on have operands of its own floating-point type."""
    kind = instruction.shape.element_type
    if kind is None or not kind.is_floating:
        return
    for number, operand in enumerate(instruction.operands):
        theirs = operand.shape.element_type
        if theirs is not kind and theirs is not None and theirs.is_floating:
            shape = operand.shape.with_element_type(instruction.shape.type_name)
            converted = instruction.parent.add(Opcode.CONVERT, shape, [operand])
            instruction.replace_operand(number, converted)
