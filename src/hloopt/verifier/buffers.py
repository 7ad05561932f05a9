"""Rules about custom calls, and about buffers `b(…)`, which are written in place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from hloopt.diagnostics import HloError, HloVerifyError
from hloopt.ir.attribute_values import parse_output_to_operand_aliasing
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken, show_index
from hloopt.verifier.shapes import has_buffers

_Index = tuple[int, ...]
_Value = tuple[Instruction, _Index]
_FORWARDS = frozenset((Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.OPT_BARRIER))


def check_custom_call(instruction: Instruction, setting: Setting) -> None:
    """A custom call returns each buffer it takes, once; Pin and Unpin alias operand and result."""
    target = custom_call_target(instruction)
    text = instruction.attributes.get("output_to_operand_aliasing", "{}")
    aliases = parse_output_to_operand_aliasing(text)
    if target in ("Pin", "Unpin"):
        if len(aliases) != 1:
            raise HloVerifyError(
                f"custom-call to {target} must have one output-to-operand aliasing, found "
                f"{len(aliases)}"
            )
        return
    returned = Counter((alias.parameter, alias.parameter_index) for alias in aliases)
    for number, operand in enumerate(instruction.operands):
        if not has_buffers(operand.shape):
            continue
        for index, part in operand.shape.subshapes():
            if not part.is_buffer:
                continue
            place = f"operand {number} ShapeIndex {show_index(index)}"
            if returned[number, index] > 1:
                raise HloVerifyError(f"buffer is used in results multiple times: {place}")
            if not returned[number, index]:
                raise HloVerifyError(f"buffer is used in operands but not in results: {place}")


def check_rng_seed(instruction: Instruction, setting: Setting) -> None:
    """The custom call GetRngSeed takes nothing and returns a u64."""
    if instruction.attributes.get("custom_call_target") != '"GetRngSeed"':
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
