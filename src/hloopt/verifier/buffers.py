"""Rules about custom calls, and about buffers `b(…)`, which are written in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hloopt.diagnostics import HloError, HloVerifyError
from hloopt.ir.attributes.values import Alias, parse_output_to_operand_aliasing
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ASYNC, Opcode
from hloopt.ir.shape_inference.operation import show
from hloopt.ir.shapes.shape import Shape
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken, show_index
from hloopt.verifier.shapes import has_buffers

_Index = tuple[int, ...]
_Value = tuple[Instruction, _Index]
_FORWARDS = frozenset((Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.OPT_BARRIER))


_PINNING = ("Pin", "Unpin")
_MAY_HOLD = ASYNC | {
    *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT),
    *(Opcode.CUSTOM_CALL, Opcode.WHILE, Opcode.CALL, Opcode.CONDITIONAL),
}
"""Opcodes that take or return buffers."""


def check_allowed(instruction: Instruction, setting: Setting) -> None:
    """Only custom calls, and opcodes that pass values on, take or return buffers."""
    if instruction.opcode in _MAY_HOLD:
        return
    for shape in (instruction.shape, *[operand.shape for operand in instruction.operands]):
        if has_buffers(shape):
            raise HloVerifyError(
                f"Seen buffers while buffers aren't allowed in this context: {show(shape)} of "
                f"{instruction.opcode}"
            )


def check_custom_call(instruction: Instruction, setting: Setting) -> None:
    """A custom call returns each buffer it takes, once, and no other.

    Pin makes a buffer of an array, Unpin an array of a buffer, and CreateBuffer one of nothing.
    """
    target = custom_call_target(instruction)
    shapes = [operand.shape for operand in instruction.operands]
    if target == "CreateBuffer":
        if shapes:
            raise HloVerifyError("custom-call to CreateBuffer can't have an operand")
        if not instruction.shape.is_buffer:
            raise HloVerifyError("custom-call to CreateBuffer must have one buffer result")
        return
    text = instruction.attributes.get("output_to_operand_aliasing", "{}")
    aliases = parse_output_to_operand_aliasing(text)
    if target in _PINNING:
        _check_pinning(instruction, target, aliases)
        return
    returned = Counter((alias.parameter, alias.parameter_index) for alias in aliases)
    for number, shape in enumerate(shapes):
        for index in _buffer_indices(shape):
            place = f"operand {number} ShapeIndex {show_index(index)}"
            if returned[number, index] > 1:
                raise HloVerifyError(f"buffer is used in results multiple times: {place}")
            if not returned[number, index]:
                raise HloVerifyError(f"buffer is used in operands but not in results: {place}")
    aliased = {alias.output_index for alias in aliases}
    for index in _buffer_indices(instruction.shape):
        if index not in aliased:
            raise HloVerifyError(
                f"buffer is used in results but not in operands: {show_index(index)}"
            )


def _check_pinning(instruction: Instruction, target: str, aliases: Sequence[Alias]) -> None:
    if len(aliases) != 1:
        raise HloVerifyError(
            f"custom-call to {target} must have one output-to-operand aliasing, found "
            f"{len(aliases)}"
        )
    if len(instruction.operands) != 1:
        raise HloVerifyError(f"custom-call to {target} must have one operand")
    sides = (("operand", instruction.operands[0].shape), ("result", instruction.shape))
    for (what, shape), is_buffer in zip(sides, (target == "Unpin", target == "Pin"), strict=True):
        if shape.is_buffer != is_buffer or not shape.is_array:
            kind = "buffer" if is_buffer else "array"
            raise HloVerifyError(f"custom-call to {target} must have one {kind} {what}")


def _buffer_indices(shape: Shape) -> Iterator[_Index]:
    """The indices of the buffers in `shape`."""
    if has_buffers(shape):
        for index, part in shape.subshapes():
            if part.is_buffer:
                yield index


def check_rng_seed(instruction: Instruction, setting: Setting) -> None:
    """The custom call GetRngSeed takes nothing and returns a u64."""
    if custom_call_target(instruction) != "GetRngSeed":
        return
    count = len(instruction.operands)
    if count:
        raise HloVerifyError(f"GetRngSeed custom call must have 0 operands, but has {count}")
    if instruction.shape.type_name != "u64":
        raise HloVerifyError(
            f"GetRngSeed custom call must return U64 type, not {instruction.shape.text}"
        )


def check_writers(
    computation: Computation, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """Each value of a buffer is taken by one instruction, which gives it back as a new value.

    Tuples only carry values; a loop or call takes what it is given, and the root of a computation
    what it returns. O(instructions) where there are buffers.
    """
    if not any(has_buffers(i.shape) for i in found):
        return
    values: dict[Instruction, dict[_Index, _Value]] = {}
    writers: dict[_Value, list[Instruction]] = {}
    for instruction in computation.instructions:
        values[instruction] = _values(instruction, values)
        if instruction.opcode in _FORWARDS:
            continue
        taken = [v for operand in instruction.operands for v in values.get(operand, {}).values()]
        if instruction.opcode is Opcode.CONDITIONAL:
            taken = list(dict.fromkeys(taken))  # one branch runs
        for value in taken:
            writers.setdefault(value, []).append(instruction)
    root = computation.root
    for value in values.get(root, {}).values():
        writers.setdefault(value, []).append(root)
    for (owner, _), takers in writers.items():
        if len(takers) > 1:
            names = ", ".join(f"%{taker.name}" for taker in takers)
            yield broken(
                owner, f"an HLO buffer value has more than one writers (or unpins): {names}"
            )


def _values(
    instruction: Instruction, values: dict[Instruction, dict[_Index, _Value]]
) -> dict[_Index, _Value]:
    """The values in each buffer of an instruction's result, by index."""
    if not has_buffers(instruction.shape):
        return {}
    operands = [values.get(operand, {}) for operand in instruction.operands]
    if instruction.opcode is Opcode.TUPLE:
        return {(n, *i): v for n, parts in enumerate(operands) for i, v in parts.items()}
    if instruction.opcode is Opcode.GET_TUPLE_ELEMENT and operands:
        try:
            number = instruction.tuple_index
        except (ValueError, KeyError, HloError):  # another rule says so
            return {}
        return {i[1:]: v for i, v in operands[0].items() if i[:1] == (number,)}
    if instruction.opcode is Opcode.OPT_BARRIER and operands:
        return operands[0]
    return {
        index: (instruction, index)
        for index, part in instruction.shape.subshapes()
        if part.is_buffer
    }
