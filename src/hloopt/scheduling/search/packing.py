"""The memory that the buffers of a module take once they are packed."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir import Computation, Instruction, Module
from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import backend_of

_ROUNDING = 1 << 16
"""Bytes that may be allocated more: buffers begin at whole blocks."""


class Packing:
    """Refuses orders whose buffers, packed, take more memory than those of the plain orders.

    The scheduler's account adds up what is alive; buffers of other sizes leave other gaps.
    """

    def __init__(self, module: Module, more: int = 0) -> None:
        """`more`: bytes that may be allocated more than for the present orders, which stay those of
        the module until the end. O(memory of the module), as each question."""
        self._module = module
        self._backend = backend_of(module)
        self._orders: dict[Computation, Sequence[Instruction]] = {
            computation: list(computation.instructions)
            for computation in module.computations.values()
        }
        self._allowed = self._allocated() + more + _ROUNDING

    def fits(self, computation: Computation, order: Sequence[Instruction]) -> bool:
        """Whether the module may have this order of a computation, beside the ones that it was
        given before; if so it is given this one, too."""
        before = self._orders[computation]
        self._orders[computation] = order
        if self._allocated() <= self._allowed:
            return True
        self._orders[computation] = before
        return False

    def _allocated(self) -> int:
        """Bytes of all allocations."""
        assignment = BufferAssignment.of(self._module, orders=self._orders, backend=self._backend)
        return sum(allocation.size for allocation in assignment.allocations)
