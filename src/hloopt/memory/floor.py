"""The least memory that a module needs in any order of its instructions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hloopt.collector import collector_paused
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.ordering import computation_post_order
from hloopt.memory.allocations import AllocationKind
from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import Backend, backend_of
from hloopt.memory.buffers import Buffer
from hloopt.memory.schedulers import schedule_module

_NOT_RUN = (Opcode.PARAMETER, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST)
"""Operations that read and write no values, whatever the shape."""
_SET_ASIDE = (AllocationKind.PARAMETER, AllocationKind.CONSTANT)


@dataclass(frozen=True, slots=True)
class MemoryFloor:
    """Bytes of the default memory space without which no order of a module's instructions runs."""

    size: int
    instruction: Instruction
    """The one that needs them: its operands or its results, beside the state of loops around it."""


def memory_floor(module: Module, *, backend: Backend | None = None) -> MemoryFloor:
    """A lower bound of what a module is allocated in the default memory space, in any order.

    Arguments stay where they are. While an instruction runs, its operands are alive, and in the end
    its results; operands and results may share memory, so the larger of the two counts. The state
    of a loop is alive as long as it runs. Near-linear, if loops are not nested deeply. Raises
    HloVerifyError for a module whose shapes, aliases or calls do not fit together.
    """
    with collector_paused():
        return _Floors.of(module, backend or backend_of(module)).floor()


class _Floors:
    """The values that instructions need, and what is known to be alive around them."""

    def __init__(self, module: Module, assignment: BufferAssignment) -> None:
        self.module = module
        self.flow = assignment.flow
        self.of_value = assignment.buffers.of_value
        set_aside = [a for a in assignment.allocations if a.kind in _SET_ASIDE]
        self.arguments = sum(
            allocation.size
            for allocation in set_aside
            if allocation.kind is AllocationKind.PARAMETER and not allocation.color
        )
        self.set_aside = {self.of_value[v] for allocation in set_aside for v in allocation.offsets}
        """The buffers of arguments and constants."""
        self.around: dict[Computation, frozenset[Buffer]] = {module.entry: frozenset()}
        """By computation the buffers that are alive as long as it runs."""

    @classmethod
    def of(cls, module: Module, backend: Backend) -> _Floors:
        schedule = None if module.is_scheduled else schedule_module(module, backend=backend)
        orders = None if schedule is None else schedule.orders
        return cls(module, BufferAssignment.of(module, orders=orders, backend=backend, packs=False))

    def floor(self) -> MemoryFloor:
        best = MemoryFloor(self.arguments, self.module.entry.root)
        for computation in reversed(computation_post_order(self.module)):
            if computation not in self.flow.scope.is_global:
                continue
            around = self.around[computation]
            base = self.arguments + sum(buffer.size for buffer in around)
            for instruction in computation.instructions:
                needed = base + self._needed(instruction, around)
                if needed > best.size:
                    best = MemoryFloor(needed, instruction)
                self._enter(instruction, around)
        return best

    def _needed(self, instruction: Instruction, around: frozenset[Buffer]) -> int:
        """Bytes beside those around: of the operands or the results, whichever is more."""
        if instruction.opcode in _NOT_RUN:
            is_root = instruction is self.module.entry.root
            return self._size(self.flow.held[instruction], around) if is_root else 0
        flow = self.flow
        read = [value for each in instruction.operands for value in flow.read(instruction, each)]
        return max(self._size(read, around), self._size(flow.held[instruction], around))

    def _size(self, held: Iterable[int], around: frozenset[Buffer]) -> int:
        return sum(buffer.size for buffer in self._buffers(held) - around)

    def _buffers(self, held: Iterable[int]) -> set[Buffer]:
        found = (self.of_value[v] for v in self.flow.members(held) if v in self.of_value)
        return {buffer for buffer in found if not buffer.color} - self.set_aside

    def _enter(self, caller: Instruction, around: frozenset[Buffer]) -> None:
        """Note what is alive while the computations of an instruction run.

        A computation that several call is entered once: another caller can only need more.
        """
        if caller.opcode is Opcode.WHILE:
            around |= self._buffers(self.flow.held[caller])
        for callee in caller.called:
            self.around.setdefault(callee, around)
