"""Fusions: what is inside stays in registers; memory sees parameters, constants and results.

Of a parameter whose users only slice it, just the slices are read. A dynamic-update-slice works in
place: it reads and writes only what it updates.
"""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.analysis.cost.model import Cost
from hloopt.analysis.cost.sizes import leaf_bytes, table_bytes
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape

_SLICES = frozenset((Opcode.SLICE, Opcode.DYNAMIC_SLICE))
_EACH_READS_ALL = frozenset((Opcode.RESHAPE, Opcode.BROADCAST))


def fusion_cost(fusion: Instruction, inside: Cost, reads: FusedReads) -> Cost:
    """The arithmetic `inside` the fusion; the bytes that cross its border.

    O(fused instructions).
    """
    body = fusion.called[0]
    operand_bytes = tuple(map(reads.of, body.parameters))
    read = sum(operand_bytes) + _constant_bytes(body)
    written = _result_bytes(fusion.shape, body.root)
    return Cost(
        inside.flops, inside.transcendentals, read, written, inside.unfused_bytes, operand_bytes
    )


class FusedReads:
    """The bytes that fusions read of their parameters, each looked at once."""

    def __init__(self) -> None:
        self._known: dict[Instruction, int] = {}

    def of(self, parameter: Instruction) -> int:
        """Bytes read of a parameter. O(its uses), if nested fusions were asked about before."""
        total = self._known.get(parameter)
        if total is not None:
            return total
        total = 0
        waiting = [parameter]
        while waiting:
            value = waiting.pop()
            if value in self._known:
                total += self._known[value]
            elif value.shape.is_tuple:
                total += _table_reads(value, waiting)
            else:
                total += _array_reads(value, waiting)
        self._known[parameter] = total
        return total


def _table_reads(value: Instruction, waiting: list[Instruction]) -> int:
    """Reads of a tuple's table: one for each element that nobody takes; adds the taken ones."""
    elements = {
        user.tuple_index: user for user in value.users if user.opcode is Opcode.GET_TUPLE_ELEMENT
    }
    waiting += elements.values()
    unread = len(value.shape.elements) - len(elements) if value.users else 0
    return unread * table_bytes(value.shape)


def _array_reads(array: Instruction, waiting: list[Instruction]) -> int:
    """The bytes that the users of an array read; adds the parameters of nested fusions to
    `waiting`."""
    total = 0
    is_read_whole = False
    for user in array.users:
        opcode = user.opcode
        if opcode is Opcode.FUSION:
            waiting += _inside(user, array)
        elif opcode in _SLICES and user.operands[0] is array:
            total += leaf_bytes(user.shape)
        elif opcode in _EACH_READS_ALL:
            total += table_bytes(array.shape)
        elif opcode is not Opcode.DYNAMIC_UPDATE_SLICE or user.operands[0] is not array:
            is_read_whole = True
    return total + table_bytes(array.shape) if is_read_whole else total


def _inside(fusion: Instruction, operand: Instruction) -> Iterator[Instruction]:
    """The values whose users count for an operand of a nested fusion.

    Those of its parameter; or, where only the root reads that as its first operand, those of the
    fusion: what they leave out need not be computed.
    """
    body = fusion.called[0]
    parameters = body.parameters
    for number, candidate in enumerate(fusion.operands):
        if candidate is operand:
            parameter = parameters[number]
            is_for_root = list(parameter.users) == [body.root]
            if is_for_root and body.root.operands[0] is parameter and not fusion.is_root:
                yield fusion
            else:
                yield parameter


def _constant_bytes(body: Computation) -> int:
    """Constants of more than one element lie in memory."""
    return sum(
        table_bytes(instruction.shape)
        for instruction in body.instructions
        if instruction.opcode is Opcode.CONSTANT
        and instruction.shape.is_array
        and instruction.shape.element_count() > 1
    )


def _result_bytes(shape: Shape, root: Instruction) -> int:
    """The bytes written of a result: all of it, of an update in place only the update."""
    if root.opcode is Opcode.TUPLE:
        parts = zip(shape.elements, root.operands, strict=True)
        return sum(written_bytes(element, operand) for element, operand in parts)
    return written_bytes(shape, root)


def written_bytes(shape: Shape, value: Instruction) -> int:
    """The bytes that a fusion writes of an array whose elements `value` in it is."""
    is_update = value.opcode is Opcode.DYNAMIC_UPDATE_SLICE
    return leaf_bytes(value.operands[1].shape if is_update else shape)
