"""The instructions that an output of a program is computed from."""

from __future__ import annotations

from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.shapes.shape import Shape


def origins(module: Module, output: int) -> set[Instruction]:
    """The instructions that array number `output` of the entry's root may depend on.

    Elements of tuples are told apart on the way to the root; of what is called, all counts.
    O(instructions).
    """
    found: set[Instruction] = set()
    waiting = list(_sources(module.entry.root, output))
    while waiting:
        instruction = waiting.pop()
        if instruction in found:
            continue
        found.add(instruction)
        waiting += instruction.operands
        for called in instruction.called:
            waiting += called.instructions
    return found


def _sources(root: Instruction, output: int) -> list[Instruction]:
    """The operand of a tuple that has the array; the root itself where it is not a tuple."""
    while root.opcode is Opcode.TUPLE:
        for operand in root.operands:
            count = _array_count(operand.shape)
            if output < count:
                root = operand
                break
            output -= count
        else:
            break
    return [root]


def _array_count(shape: Shape) -> int:
    return sum(not leaf.is_token for leaf in shape.leaves())


def never_ends(loop: Instruction) -> bool:
    """Whether a while loop that is entered never ends: its condition reads what no trip changes."""
    body, condition = loop.called
    if body.root.shape is not condition.parameters[0].shape:
        body, condition = condition, body
    read = _elements_read(condition)
    if read is None:
        return body.root is body.parameters[0]
    if body.root.opcode is not Opcode.TUPLE:
        return False
    return all(_is_same_in_each_trip(body.root.operands[index], index) for index in read)


def _elements_read(condition: Computation) -> set[int] | None:
    """The elements of its parameter that a condition reads; None where it reads the whole."""
    users = condition.parameters[0].users
    if any(user.opcode is not Opcode.GET_TUPLE_ELEMENT for user in users):
        return None
    return {int(user.attributes["index"]) for user in users}


def _is_same_in_each_trip(value: Instruction, index: int) -> bool:
    if value.opcode is Opcode.CONSTANT:
        return True
    return (
        value.opcode is Opcode.GET_TUPLE_ELEMENT
        and value.operands[0].opcode is Opcode.PARAMETER
        and int(value.attributes["index"]) == index
    )
