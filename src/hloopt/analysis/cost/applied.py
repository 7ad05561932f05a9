"""Instructions that apply a computation, to elements or once."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TypeAlias

from hloopt.analysis.cost.model import Cost, moving
from hloopt.analysis.cost.sizes import bytes_of_operands, leaf_bytes, leaf_elements
from hloopt.ir.attributes.typed import window_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction

Callees: TypeAlias = Callable[[Computation], Cost]


def map_cost(instruction: Instruction, callees: Callees) -> Cost:
    """The computation once per element."""
    count = leaf_elements(instruction.shape)
    return applying(instruction, (count, callees(instruction.called[0])))


def reduce_cost(reduce: Instruction, callees: Callees) -> Cost:
    """The computation once for each element that goes."""
    result = reduce.shape.elements[0] if reduce.shape.is_tuple else reduce.shape
    gone = leaf_elements(reduce.operands[0].shape) - leaf_elements(result)
    return applying(reduce, (max(gone, 0), callees(reduce.called[0])))


def reduce_window_cost(reduce: Instruction, callees: Callees) -> Cost:
    """The computation once less than the window has elements, for each of the result."""
    result = reduce.shape.elements[0] if reduce.shape.is_tuple else reduce.shape
    count = leaf_elements(result) * (_window_elements(reduce) - 1)
    return applying(reduce, (count, callees(reduce.called[0])))


def select_and_scatter_cost(instruction: Instruction, callees: Callees) -> Cost:
    """For each source element: selections over the window, and one scatter."""
    select, scatter = map(callees, instruction.called)
    sources = leaf_elements(instruction.operands[1].shape)
    selections = sources * (_window_elements(instruction) - 1)
    return applying(instruction, (selections, select), (sources, scatter))


def _window_elements(instruction: Instruction) -> int:
    window = window_of(instruction)
    return prod(dimension.size for dimension in window.dimensions)


def scatter_cost(scatter: Instruction, callees: Callees) -> Cost:
    """The computation once per element of an update; reads and writes as much as the updates."""
    count = len(scatter.operands) // 2
    sizes = bytes_of_operands(scatter)
    updates = sizes[count + 1 :]
    applied = callees(scatter.called[0])
    elements = leaf_elements(scatter.operands[count + 1].shape)
    return moving(
        *((*updates, *sizes[count:]), sum(updates)),
        flops=applied.flops * elements,
        transcendentals=applied.transcendentals * elements,
    )


def sort_flops(sort: Instruction) -> int:
    """n log n comparisons of one flop each, as if all dimensions were sorted as one."""
    elements = leaf_elements(sort.operands[0].shape)
    return elements * max(elements - 1, 0).bit_length()


def call_cost(call: Instruction, callees: Callees) -> Cost:
    """The computation that is called."""
    return callees(call.called[0])


def applying(instruction: Instruction, *runs: tuple[int, Cost]) -> Cost:
    """Computations so many times each; operands read and the result written in whole."""
    return moving(
        *(bytes_of_operands(instruction), leaf_bytes(instruction.shape)),
        flops=sum(count * cost.flops for count, cost in runs),
        transcendentals=sum(count * cost.transcendentals for count, cost in runs),
    )
