"""A plan of memory spaces put into its module: copies, spaces in layouts, the new schedule."""

from __future__ import annotations

from hloopt.analysis.dataflow import Position, slots_of
from hloopt.ir import Instruction, Module
from hloopt.memory_space.allocation.planning import Plan
from hloopt.memory_space.heap.chunks import Chunk
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.passes.memory_space.colors import color, reset_parameter
from hloopt.passes.memory_space.copy_schedule import schedule_copies
from hloopt.passes.memory_space.insert_copies import CopyInserter, CopyPair, remove_unread
from hloopt.passes.memory_space.insert_windows import insert_windows
from hloopt.passes.memory_space.report import (
    MemorySpaceReport,
    PlacedChunk,
    PrefetchedParameter,
)


def apply_plan(module: Module, plan: Plan, options: MemorySpaceOptions) -> MemorySpaceReport:
    """Change a module as planned. Near-linear in its size."""
    inserter = CopyInserter(plan.program)
    inserter.insert(plan.values)
    inserter.pairs += [
        CopyPair(call.start, call.done, call.start_after, call.done_before, is_prefetch=True)
        for call in plan.custom_calls
    ]
    windows = insert_windows(plan.windows)
    remove_unread(list(module.computations.values()))
    schedule_copies(plan.program, inserter.pairs)
    chunks = _chunks(plan, inserter, windows)
    for buffer in plan.annotated:
        reset_parameter(plan.program, buffer)
    color(module, chunks, options.alternate_memory_space)
    return _report(plan, chunks)


def _chunks(
    plan: Plan, inserter: CopyInserter, windows: dict[Instruction, Chunk]
) -> dict[Position, tuple[int, int]]:
    """Offset and size by the positions that are in alternate memory."""
    found = {Position(call, 1): (chunk.offset, chunk.size) for call, chunk in windows.items()}
    for value in plan.values:
        for allocation in value.sequence:
            holder = inserter.holder_of(allocation)
            if allocation.chunk is not None and holder is not None:
                found[holder] = allocation.chunk.offset, allocation.chunk.size
    for done, allocation, part in inserter.parts:
        if allocation.chunk is not None:
            found[Position(done, 0)] = allocation.chunk.offset + part.first, part.size
    return found


def _report(plan: Plan, chunks: dict[Position, tuple[int, int]]) -> MemorySpaceReport:
    report = MemorySpaceReport(loop_plan=plan.loop_plan)
    for instruction, chunk in plan.scoped.chunks.items():
        report.scoped[instruction.name] = (chunk.offset, chunk.size)
    if plan.scoped.after_program is not None:
        after = plan.scoped.after_program
        report.post_module_chunk = (after.offset, after.size)
    for prefetch in plan.prefetched.values():
        report.cross_program_prefetches.append(
            PrefetchedParameter(prefetch.parameter, prefetch.index, prefetch.chunk.offset)
        )
    for position, (offset, size) in chunks.items():
        index = slots_of(position.instruction.shape).indices[position.slot]
        report.chunks.append(PlacedChunk(position.instruction, index, offset, size))
    return report
