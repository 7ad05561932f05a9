"""The traffic between memory spaces: copies from one to another, and what is read where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.async_operations import wrapped
from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.runs import RUNNING, count_runs
from hloopt.ir import Instruction, Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.memory.assignment import BufferAssignment

_MOVING = frozenset((Opcode.COPY, Opcode.COPY_START, Opcode.SLICE, Opcode.DYNAMIC_SLICE))
"""Operations that leave what they read as it is, elsewhere."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """The traffic of one memory space in one run of the module. Loops of unknown trip counts take
    one trip."""

    moves_in: int = 0
    """Copies and slices from another memory space to this one."""
    bytes_in: int = 0
    moves_out: int = 0
    bytes_out: int = 0
    read: int = 0
    """Bytes that other operations read here."""
    read_share: float = 0.0
    """The part of all bytes read that is read here, from 0 to 1."""


@dataclass(frozen=True, slots=True)
class Move:
    """A copy or slice of an array from one memory space to another."""

    instruction: Instruction
    """A copy-start, or a copy, slice or dynamic-slice, which an async-start may wrap."""
    source: int
    destination: int
    shape: Shape
    """The array that arrives."""


def move_of(instruction: Instruction) -> Move | None:
    """The move between memory spaces that an instruction makes, if it makes one."""
    if instruction.opcode not in _MOVING or not instruction.operands:
        return None
    is_start = instruction.opcode is Opcode.COPY_START
    result = instruction.shape.elements[0] if is_start else instruction.shape
    operand = instruction.operands[0].shape
    if not (result.is_array and operand.is_array):
        return None
    source, destination = operand.layout.memory_space, result.layout.memory_space
    if source == destination:
        return None
    return Move(instruction, source, destination, result)


def asynchronous_move(start: Instruction) -> Move | None:
    """The move between memory spaces that a copy-start or an async-start begins, if it does.
    O(1)."""
    if start.opcode is Opcode.ASYNC_START:
        return move_of(wrapped(start))
    return move_of(start) if start.opcode is Opcode.COPY_START else None


def traffic_of(assignment: BufferAssignment) -> dict[int, Traffic]:
    """The traffic of each memory space in which anything lies. O(instructions + operands)."""
    module = assignment.flow.module
    costs = CostAnalysis(module)
    runs = count_runs(module, costs)
    spaces = assignment.spaces()
    read = dict.fromkeys(spaces, 0)
    moved: dict[tuple[int, int], list[int]] = {}
    for instruction in assignment.schedule.steps:
        times = runs[instruction.parent].times if instruction.parent in runs else 1
        move = move_of(instruction)
        if move is not None:
            numbers = moved.setdefault((move.source, move.destination), [0, 0])
            numbers[0] += times
            numbers[1] += assignment.backend.sizes.bytes(move.shape) * times
        elif instruction.opcode not in RUNNING:
            for shape, size in _reads(instruction, costs):
                space = shape.layout.memory_space
                read[space] = read.get(space, 0) + size * times
    total = sum(read.values())
    return {space: _traffic(space, moved, read[space], total) for space in spaces}


def _reads(instruction: Instruction, costs: CostAnalysis) -> Iterator[tuple[Shape, int]]:
    """The arrays that an operation reads, and how many bytes of each."""
    sizes = costs.of(instruction).operand_bytes
    for operand, size in zip(instruction.operands, sizes, strict=False):
        if operand.shape.is_array:
            yield operand.shape, size


def _traffic(space: int, moved: dict[tuple[int, int], list[int]], read: int, total: int) -> Traffic:
    arriving = [numbers for (_, to), numbers in moved.items() if to == space]
    leaving = [numbers for (source, _), numbers in moved.items() if source == space]
    return Traffic(
        sum(count for count, _ in arriving),
        sum(size for _, size in arriving),
        sum(count for count, _ in leaving),
        sum(size for _, size in leaving),
        read,
        read / total if total else 0.0,
    )
