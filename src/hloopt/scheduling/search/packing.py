"""The memory that the buffers of a module take once they are packed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from hloopt.ir import Computation, Instruction, Module
from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import backend_of

_LEAST_ROUNDING = 1 << 16
_ROUNDING = 1000
"""The part of what is allocated that may be allocated more, at least `_LEAST_ROUNDING` bytes:
buffers begin at whole blocks, and any other order packs a little better or worse."""


class Packing:
    """Refuses orders whose buffers, packed, take more memory than those of the plain orders.

    The scheduler's account adds up what is alive; buffers of other sizes leave other gaps.
    """

    def __init__(self, module: Module, limit: int | None = None) -> None:
        """`limit`: bytes that may be allocated, if that is said, unless the present orders, which
        stay those of the module until the end, take more."""
        self._module = module
        self._backend = backend_of(module)
        self._orders: dict[Computation, Sequence[Instruction]] = {
            computation: list(computation.instructions)
            for computation in module.computations.values()
        }
        self._limit = limit

    def fits(self, computation: Computation, order: Sequence[Instruction]) -> bool:
        """Whether the module may have this order of a computation, beside the ones that it was
        given before; if so it is given this one, too. O(memory of the module)."""
        allowed = self._allowed
        before = self._orders[computation]
        self._orders[computation] = order
        allocated = self._packed()
        if allocated <= allowed:
            self.allocated = allocated
            return True
        self._orders[computation] = before
        return False

    @cached_property
    def _allowed(self) -> int:
        """Bytes, found before the first other order is tried."""
        allocated = self.allocated
        if self._limit is not None:
            return max(allocated, self._limit)
        return allocated + max(allocated // _ROUNDING, _LEAST_ROUNDING)

    @cached_property
    def allocated(self) -> int:
        """Bytes of all allocations, in the orders that computations are given by now. O(memory of
        the module), once for these orders."""
        return self._packed()

    def _packed(self) -> int:
        assignment = BufferAssignment.of(self._module, orders=self._orders, backend=self._backend)
        return sum(allocation.size for allocation in assignment.allocations)
