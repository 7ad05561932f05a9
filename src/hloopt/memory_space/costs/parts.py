"""The bytes that an instruction reads and writes of parts of its operands and its result."""

from __future__ import annotations

from hloopt.analysis.cost.fusion import FusedReads, written_bytes
from hloopt.analysis.cost.model import Cost
from hloopt.analysis.cost.sizes import leaf_bytes
from hloopt.analysis.dataflow.slots import Index
from hloopt.ir import Instruction, Opcode
from hloopt.ir.shapes.shape import Shape

_ELSEWHERE = (Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL)
"""Opcodes whose results computations write that they run."""


def operand_bytes(
    instruction: Instruction, cost: Cost, number: int, index: Index, reads: FusedReads
) -> int:
    """Bytes read of a part of an operand. 0 where computations that are run read it.

    Of a tuple instructions read the table; fusions read the elements, too. O(uses in the fusion).
    """
    if not index:
        return cost.operand_bytes[number] if number < len(cost.operand_bytes) else 0
    if instruction.opcode is not Opcode.FUSION:
        return 0
    values = [instruction.called[0].parameters[number]]
    for element in index:
        values = [
            user
            for value in values
            for user in value.users
            if user.opcode is Opcode.GET_TUPLE_ELEMENT and user.tuple_index == element
        ]
    return sum(map(reads.of, values))


def result_bytes(instruction: Instruction, cost: Cost, index: Index) -> float:
    """Bytes written of a part of a result: of all that is written as much as its size is.

    0 where computations that are run write it, or if nobody knows, and of the elements of a tuple
    that is put together. O(length of the index).
    """
    opcode = instruction.opcode
    if opcode in _ELSEWHERE or (index and opcode is Opcode.TUPLE):
        return 0
    shape, written = instruction.shape, max(cost.bytes_written, 0)
    if index and opcode is Opcode.FUSION:
        root = instruction.called[0].root
        if root.opcode is Opcode.TUPLE:
            first, *rest = index
            shape = shape.elements[first]
            return _share(shape, written_bytes(shape, root.operands[first]), tuple(rest))
    return _share(shape, written, index)


def _share(shape: Shape, size: int, index: Index) -> float:
    if not index:
        return size
    whole = leaf_bytes(shape)
    for number in index:
        shape = shape.elements[number]
    return size * leaf_bytes(shape) / whole if whole else 0
