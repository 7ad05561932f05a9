"""The slices of a stack: whether all are written, and each is one piece of memory."""

from __future__ import annotations

from hloopt.analysis.loops.expressions import Expression
from hloopt.analysis.loops.induction import induction_variable
from hloopt.analysis.loops.integers import is_integer
from hloopt.analysis.loops.sources import Source
from hloopt.analysis.loops.trip_count import trip_count
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape
from hloopt.passes.memory_space.residuals.indices import index_steps
from hloopt.passes.memory_space.residuals.stacks import Access, NotOffloaded, Stack

_MOST_TRIPS = 10_000


def check_slices(stack: Stack) -> None:
    """Find the dimension that all slices are of, and raise NotOffloaded where not all is written.

    O(slices of the stack).
    """
    shape = stack.fill.shape
    accesses = [*stack.writes, *stack.reads]
    for access in accesses:
        stack.dimension = _sliced(access, shape)
    for access in accesses:
        if access.fusion is not None and index_steps(access.start(stack.dimension)) is None:
            raise NotOffloaded(f"%{access.fusion.name} computes the index of a slice from arrays")
    _check_written(stack, shape.dimensions[stack.dimension])


def _sliced(access: Access, stack: Shape) -> int:
    """The dimension in which an access is smaller than the stack: that of the largest stride."""
    piece = access.piece
    sliced = [n for n, size in enumerate(stack.dimensions) if piece.dimensions[n] != size]
    outermost = [n for n in stack.layout.minor_to_major if stack.dimensions[n] > 1]
    if len(sliced) != 1:
        raise NotOffloaded(f"%{access.slicing.name} is not a slice of one dimension")
    if sliced != outermost[-1:] or piece.layout != stack.layout:
        raise NotOffloaded(f"the slice of %{access.slicing.name} is not one piece of memory")
    return sliced[0]


def _check_written(stack: Stack, size: int) -> None:
    intervals: set[tuple[int, int]] = set()
    for write in stack.writes:
        length = write.piece.dimensions[stack.dimension]
        for start in _starts(write, stack.dimension):
            first = min(max(start, 0), size - length)
            intervals.add((first, first + length))
    reached = 0
    for first, behind in sorted(intervals):
        if first > reached:
            break
        reached = max(reached, behind)
    if reached < size:
        raise NotOffloaded(f"nothing writes its slice {reached} before it is read")


def _starts(write: Access, dimension: int) -> list[int]:
    """The indices that a write starts at, in each trip of its loop."""
    index = write.start(dimension)
    unknown = NotOffloaded(f"the slices that %{write.slicing.name} writes are not known")
    loop = write.loop
    trips = 1 if loop is None else trip_count(loop)
    counters = {} if loop is None else _counters(loop)
    expression = Expression.of(index, list(counters))
    if expression is None or trips is None or trips > _MOST_TRIPS:
        raise unknown
    starts: list[int] = []
    for trip in range(trips):
        start = expression.evaluate(*(init + trip * step for init, step in counters.values()))
        if not isinstance(start, int):
            raise unknown
        starts.append(start)
    return starts


def _counters(loop: Instruction) -> dict[Source, tuple[int, int]]:
    """The elements of a loop's state that count trips: initial value and step."""
    found: dict[Source, tuple[int, int]] = {}
    (parameter,) = loop.called[0].parameters
    root = loop.called[0].root
    for number, value in enumerate(root.operands):
        variable = induction_variable(loop, number) if is_integer(value) else None
        if variable is not None and variable.init is not None:
            found[Source(parameter, (number,))] = (variable.init, variable.step)
    return found
