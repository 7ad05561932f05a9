"""Programs without narrow floats: copies that compute in f32 what they round to fewer bits.

Two programs that differ in nothing but where they round to narrow types have copies that are equal
up to the rounding of f32, which is far less.
"""

from __future__ import annotations

import numpy as np

from hloopt.equivalence.path_types import NARROW
from hloopt.interpreter.errors import cannot_run
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.literals import literal_text, literal_value
from hloopt.interpreter.values import Value, dtype_of_shape
from hloopt.ir.clone import clone_module
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.entry_layout import format_entry_layout, parse_entry_layout
from hloopt.ir.shapes.shape import Shape, fold, tuple_shape, without_packing

_LAYOUT = "entry_computation_layout"
_OF_BITS = (Opcode.BITCAST, Opcode.BITCAST_CONVERT, Opcode.STOCHASTIC_CONVERT)
"""Operations that see how a float is written in bits."""


def without_narrow_floats(module: Module) -> Module:
    """A copy of a module in which floats of less than 32 bits are f32, constants rounded as before.

    Conversions that have nothing left to do are passed over: a computation that is a sum is seen to
    be one, and terms are added in the same order with and without them. Raises RunError where the
    bits of such floats are read. O(instructions + elements of constants).
    """
    copy, computations = clone_module(module)
    for original, computation in computations.items():
        copies = {instruction.name: instruction for instruction in computation.instructions}
        for instruction in original.instructions:
            _widen(instruction, copies[instruction.name])
        for instruction in original.instructions:
            _pass_over(instruction, copies[instruction.name])
    if _LAYOUT in copy.attributes:
        parameters, result = parse_entry_layout(copy.attributes[_LAYOUT])
        layout = format_entry_layout([*map(_wide, parameters)], _wide(result))
        copy.set_attribute(_LAYOUT, layout)
    return copy


def _widen(original: Instruction, instruction: Instruction) -> None:
    shape = _wide(original.shape)
    if original.opcode in _OF_BITS:
        operand = original.operands[0].shape
        is_narrow = shape != original.shape or _wide(operand) != operand
        if is_narrow and operand.element_type != original.shape.element_type:
            raise cannot_run(original, "it reads the bits of narrow floats", "HLO501")
    if original.opcode is Opcode.REDUCE_PRECISION:
        instruction.set_attribute("exponent_bits", "8")
        instruction.set_attribute("mantissa_bits", "23")
    if shape == original.shape:
        return
    if original.opcode is Opcode.CONSTANT and ELIDED not in original.payload:
        value = _in_f32(literal_value(original.payload, original.shape), shape)
        instruction.set_payload(literal_text(value, shape))
    instruction.set_shape(shape)


def _pass_over(original: Instruction, instruction: Instruction) -> None:
    """Let users of a conversion that became one to the same type take its operand.

    Not where a bitcast reads the result: it sees the layout, which may be another one.
    """
    if original.opcode is not Opcode.CONVERT:
        return
    if any(user.opcode is Opcode.BITCAST for user in instruction.users):
        return
    (operand,) = instruction.operands
    is_left_over = original.shape.element_type != original.operands[0].shape.element_type
    if is_left_over and instruction.shape.element_type == operand.shape.element_type:
        instruction.replace_all_uses_with(operand)


def _in_f32(value: Value, shape: Shape) -> Value:
    if shape.is_tuple:
        return tuple(map(_in_f32, value, shape.elements))
    return value.astype(dtype_of_shape(shape))


def _wide(shape: Shape) -> Shape:
    """The shape with f32 for narrow floats."""
    return fold(shape, _wide_leaf, tuple_shape, {})


def _wide_leaf(leaf: Shape) -> Shape:
    element = leaf.element_type
    if element is None or not element.is_floating or element.bits >= NARROW:
        return leaf
    return without_packing(leaf.with_element_type("f32"))


def widened_inputs(inputs: Inputs, module: Module) -> Inputs:
    """Inputs with the arrays that are given for narrow parameters as f32."""
    given = {}
    for key, array in inputs.given.items():
        leaf = module.entry.parameters[key.parameter].shape.leaves()[key.leaf]
        if _wide(leaf) != leaf:
            dtype = dtype_of_shape(leaf)
            is_raw = array.dtype.type is np.void and array.dtype.itemsize == dtype.itemsize
            array = (array.view(dtype) if is_raw else array).astype(np.float32)
        given[key] = array
    return inputs._replace(given=given)
