"""The buffers that instructions of a computation hold, as the memory schedulers of XLA see it."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.analysis.dataflow.forwarding import Forward, defined_slots, forwards_of
from hloopt.analysis.dataflow.slots import slots_of
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.ordering import post_order
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE
from hloopt.ir.shapes.shape import Shape
from hloopt.memory.sizes import CPU_SIZES, SizeRule

NO_MEMORY = (Opcode.PARAMETER, Opcode.CONSTANT)
"""Opcodes whose results take no memory while they wait for their users."""
_NEW = -1
_PASS_ON = frozenset(
    (
        *(Opcode.GET_TUPLE_ELEMENT, Opcode.TUPLE, Opcode.BITCAST, Opcode.COPY, Opcode.DOMAIN),
        *(Opcode.OPT_BARRIER, Opcode.ADD_DEPENDENCY, Opcode.COPY_START, Opcode.COPY_DONE),
        *(Opcode.SEND, Opcode.RECV_DONE),
    )
)


class LocalBuffers:
    """The buffers of one computation, numbered from 0.

    Looked at from inside: what does not pass operands on makes all of its result, so calls, loops
    and starts of collectives do, too, and parameters. O(slots of all instructions). Raises
    HloVerifyError where shapes do not fit or something depends on itself.
    """

    def __init__(self, computation: Computation, sizes: SizeRule = CPU_SIZES) -> None:
        self.order = post_order(computation)
        self._sizes = sizes
        self.held: dict[Instruction, list[int]] = {}
        """The buffer in each slot of an instruction."""
        self.definer: list[Instruction] = []
        self.size: list[int] = []
        for instruction in self.order:
            parts = slots_of(instruction.shape).parts
            held = [_NEW] * len(parts)
            for slot, source, start, width, _ in _passed_on(instruction):
                held[slot : slot + width] = self.held[source][start : start + width]
            for slot, buffer in enumerate(held):
                if buffer == _NEW:
                    held[slot] = len(self.size)
                    self.definer.append(instruction)
                    self.size.append(buffer_bytes(parts[slot], sizes))
            self.held[instruction] = held

    def defined_bytes(self, instruction: Instruction) -> int:
        """The bytes of the buffers that an instruction makes. O(slots)."""
        if instruction.opcode in NO_MEMORY:
            return 0
        held = self.held[instruction]
        return sum(self.size[b] for b in held if self.definer[b] is instruction)

    def new_bytes(self, instruction: Instruction) -> int:
        """The bytes of the values that an instruction makes, seen together with its callees.

        A call passes on what its callee makes; results of loops and branches, which merge, are
        new. O(slots).
        """
        parts = slots_of(instruction.shape).parts
        merges = instruction.opcode in (Opcode.WHILE, Opcode.CONDITIONAL)
        new = range(len(parts)) if merges else defined_slots(instruction)
        return sum(buffer_bytes(parts[slot], self._sizes) for slot in new)


def buffer_bytes(shape: Shape, sizes: SizeRule) -> int:
    """The bytes of a part of a result as schedulers count them: host memory is free, sizes of
    dynamic dimensions are not stored."""
    if not shape.is_array:
        return sizes.bytes(shape)
    return 0 if shape.layout.memory_space == HOST_MEMORY_SPACE else sizes.data_bytes(shape)


def _passed_on(instruction: Instruction) -> Iterable[Forward]:
    opcode = instruction.opcode
    if opcode in _PASS_ON:
        return forwards_of(instruction)
    if opcode is Opcode.ASYNC_START:
        results = slots_of(instruction.shape).element(1).start
        return [f for f in forwards_of(instruction) if f.slot < results]
    if opcode is Opcode.ASYNC_DONE:
        source = instruction.operands[0]
        results = slots_of(source.shape).element(1)
        return [Forward(0, source, results.start, results.stop - results.start)]
    return ()
