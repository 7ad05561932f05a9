"""Windows: pieces of operands in default memory that are loaded before a fusion runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hloopt.ir import Instruction, Opcode
from hloopt.memory_space.allocation.values import AllocationValue
from hloopt.memory_space.heap.chunks import Chunk
from hloopt.memory_space.ledger.ledger import Ledger
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.program import Program

_KINDS = ("kLoop", "kOutput")


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    """The first piece that a fusion reads of an operand, in alternate memory."""

    fusion: Instruction
    operand: int
    chunk: Chunk


def find_windows(
    program: Program,
    values: Iterable[AllocationValue],
    ledger: Ledger,
    options: MemorySpaceOptions,
    limit: int,
) -> list[Window]:
    """Windows, as far as there is room, for operands of fusions that are in default memory.

    A window needs its place only while the fusion runs. O(operands of fusions).
    """
    if not options.enable_window_prefetch:
        return []
    inside = {
        (use.user, use.operand)
        for value in values
        for allocation in value.sequence
        if allocation.chunk is not None
        for use in allocation.uses
    }
    found = []
    for time, fusion in enumerate(program.schedule.steps):
        if (
            fusion.opcode is not Opcode.FUSION
            or not program.has(fusion)
            or fusion.attributes.get("kind") not in _KINDS
            or len(fusion.operands) > options.window_prefetch_max_operands
        ):
            continue
        for operand, value in enumerate(fusion.operands):
            size = _window_bytes(fusion, operand, options)
            if not size or not value.shape.is_array or (fusion, operand) in inside:
                continue
            chunk = Chunk(ledger.heap.best_offset(size, time, time), size)
            if chunk.end <= limit:
                ledger.take(chunk, time, time)
                found.append(Window(fusion, operand, chunk))
    ledger.keep()
    return found


def _window_bytes(fusion: Instruction, operand: int, options: MemorySpaceOptions) -> int:
    """The bytes of an operand that a fusion reads at a time; 0 where they are not worth it."""
    for span in options.operand_span_sizes:
        if span.name in (None, fusion.name) and span.operand in (None, operand):
            return span.bytes if span.bytes >= options.window_prefetch_min_span_size else 0
    return 0
