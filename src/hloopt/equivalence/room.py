"""The memory of a comparison: values of several runs at a time, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.diagnostics import counted
from hloopt.equivalence.measures import Errors, Pair, is_integral
from hloopt.interpreter.errors import cannot_run
from hloopt.interpreter.limits import MORE_MEMORY
from hloopt.interpreter.values import Array, Value, arrays_of
from hloopt.ir.instruction import Instruction

_PER_FLOAT, _PER_COMPLEX, _PER_INTEGER = 112, 80, 56
"""Bytes that it takes to compare two elements (see `measures.errors_of`)."""
_PER_ERROR = 40
"""Bytes of the errors of an element, which are kept of an output that is off."""


def bytes_held(values: Iterable[Value]) -> int:
    """The bytes of the arrays of some values, each array once."""
    return sum({id(array): array.nbytes for array in arrays_of(tuple(values))}.values())


def _width(array: Array) -> int:
    if is_integral(array):
        return _PER_INTEGER
    return _PER_COMPLEX if array.dtype.kind == "c" else _PER_FLOAT


class Room:
    """The memory that is left for a comparison beside `held` bytes; None is no bound."""

    def __init__(self, memory: int | None, held: int, root: Instruction) -> None:
        self._bound = memory
        self._root = root
        """The compared outputs, as messages name them."""
        self.held = held

    def check(self, pair: Pair) -> None:
        """Raise RunError where comparing a pair takes more than there is."""
        needed = self.held + pair.left.size * _width(pair.left)
        if self._bound is not None and needed > self._bound:
            raise cannot_run(
                self._root,
                f"comparing {pair.name} would take {counted(needed, 'byte')}, of these "
                f"{self.held:,} for what both programs take and give; the limit is {self._bound:,}",
                "HLO503",
                MORE_MEMORY,
            )

    def beside(self, size: int) -> Room:
        """The room that is left beside `size` bytes more."""
        return Room(self._bound, self.held + size, self._root)

    def keep(self, errors: Errors) -> None:
        """Errors that stay."""
        self.held += errors.absolute.size * _PER_ERROR
