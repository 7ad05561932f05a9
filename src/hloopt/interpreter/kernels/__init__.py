"""The computations of opcodes: functions of an instruction and the values of its operands.

A kernel is `kernel(instruction, *operands) -> value`. It takes types, attributes and result
dimensions from the instruction, sizes from the operands. Those of elementwise opcodes never look at
dimensions: `scalar_calls` runs them on arrays in place of scalars. One that applies computations
to elements, or takes long, is `kernel(plans, instruction, *operands)`: for
`scalar_calls.apply_to_arrays`, and the limits of the run.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple, TypeAlias, TypeVar

from hloopt.ir.opcode import Opcode

Function: TypeAlias = Callable[..., Any]
_AnyFunction = TypeVar("_AnyFunction", bound=Function)


class Kernel(NamedTuple):
    """The function for an opcode."""

    function: Function
    calls: bool
    """Whether it takes the plans first, to apply computations or to stop at a limit."""


_HOMES = (
    *("plumbing", "elementwise", "conversion", "arrangement", "indexing", "gather_scatter"),
    *("sorting", "reduction"),
    *("windows", "contraction", "convolution", "linear_algebra", "normalization", "random"),
    *("dynamic", "custom_call"),
)
_KERNELS: dict[Opcode, Kernel] = {}


def kernel(*opcodes: Opcode, calls: bool = False) -> Callable[[_AnyFunction], _AnyFunction]:
    """Register a function as the kernel of `opcodes`."""

    def register(function: _AnyFunction) -> _AnyFunction:
        for opcode in opcodes:
            assert opcode not in _KERNELS, opcode
            _KERNELS[opcode] = Kernel(function, calls)
        return function

    return register


@cache
def kernels() -> dict[Opcode, Kernel]:
    """All kernels by opcode; control flow and what devices do together have none."""
    for home in _HOMES:
        import_module(f"{__name__}.{home}")
    return _KERNELS
