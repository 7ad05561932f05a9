"""Predicates on what may lie in alternate memory: buffers, values, positions and uses."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.async_operations import OWN_STARTS
from hloopt.analysis.dataflow import Position, Use, slots_of
from hloopt.ir import Instruction, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.ir.opcode import ASYNC
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.allocation.hints import UseName
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.options.parts import Description
from hloopt.memory_space.program import Program

HELD_UNTIL_DONE = frozenset(
    (Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.SEND, Opcode.RECV, *OWN_STARTS)
)
"""Opcodes whose results an operation works on until its done: they may not be moved."""
_TRANSFERS = (Opcode.SEND, Opcode.SEND_DONE, Opcode.RECV, Opcode.RECV_DONE)


@dataclass(slots=True)
class Allowed:
    """The predicates of an assignment."""

    program: Program
    options: MemorySpaceOptions
    denied: frozenset[UseName] = frozenset()
    """Uses that a search has read default memory."""

    def buffer(self, buffer: Buffer) -> bool:
        """Whether any value of a buffer may ever be in alternate memory."""
        flow = self.program.flow
        spaces = (self.options.default_memory_space, self.options.alternate_memory_space)
        for value in buffer.values:
            shape = flow.shape(value)
            # Effective scalars have one element; a buffer may not be copied.
            if not shape.is_array or shape.is_buffer or shape.element_count() < 2:
                return False
            for position in flow.positions(value):
                instruction = position.instruction
                if instruction.opcode is Opcode.ADD_DEPENDENCY or _is_host_transfer(instruction):
                    return False
                if self.program.shape(position).layout.memory_space not in spaces:
                    return False
        return True

    def value(self, value: int) -> bool:
        """Whether a value may be defined in alternate memory."""
        definer = self.program.flow.definer[value]
        is_entry_parameter = definer.opcode is Opcode.PARAMETER and definer.parent.is_entry
        if is_entry_parameter and not self.options.entry_parameters_allowed_in_alternate_memory:
            return False
        return self.position(Position(definer, self.program.flow.slot[value]))

    def position(self, position: Position) -> bool:
        instruction = position.instruction
        index = slots_of(instruction.shape).indices[position.slot]
        return not _described(self.options.positions_not_allowed, instruction, None, index)

    def use(self, use: Use) -> bool:
        """Whether a use may read alternate memory.

        What is bound late to an asynchronous operation may not be there, nor one of several
        operands of an all-to-all, whose shapes have to be equal.
        """
        user = use.user
        if self.denied and (user.name, use.operand, use.slot) in self.denied:
            return False
        if user.opcode is Opcode.ASYNC_UPDATE and use.operand:
            return False
        if user.opcode is Opcode.ALL_TO_ALL and len(user.operands) > 1:
            return False
        operand = use.user.operands[use.operand]
        index = slots_of(operand.shape).indices[use.slot]
        return not _described(self.options.uses_not_allowed, use.user, use.operand, index)

    def is_contiguous(self, position: Position) -> bool:
        """Whether what a position holds keeps its place until its last use."""
        instruction = position.instruction
        if instruction.opcode in HELD_UNTIL_DONE:
            return True
        index = slots_of(instruction.shape).indices[position.slot]
        return any(
            rule.name in (None, instruction.name)
            and rule.opcode in (None, instruction.opcode.value)
            and rule.not_index != index
            for rule in self.options.positions_require_contiguous_allocation
        )


def _is_host_transfer(instruction: Instruction) -> bool:
    if instruction.opcode not in _TRANSFERS:
        return False
    return instruction.attribute("is_host_transfer") == "true"


def _described(
    described: Description | None,
    instruction: Instruction,
    operand: int | None,
    index: tuple[int, ...],
) -> bool:
    """Whether all that a description says holds; nothing described: no."""
    if described is None or described == Description():
        return False
    if described.opcodes is not None and instruction.opcode.value not in described.opcodes:
        return False
    read = None if operand is None else instruction.operands[operand].name
    if described.names is not None or described.operand_names is not None:
        is_named = instruction.name in (described.names or ())
        if not is_named and read not in (described.operand_names or ()):
            return False
    if described.other_threads is not None:
        is_async = instruction.opcode in ASYNC
        caller = async_start_of(instruction) if is_async else instruction
        threads = {callee.execution_thread for callee in caller.called}
        is_elsewhere = bool(threads - {instruction.parent.execution_thread})
        if is_elsewhere != described.other_threads:
            return False
    return described.operand in (None, operand) and described.index in (None, index)
