"""The plan of an assignment: what lies where when, before anything in the module changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hloopt.diagnostics import Defect, PassRefused, counted
from hloopt.ir import Module, Opcode
from hloopt.memory.buffers import Buffer
from hloopt.memory_space.allocation.allocator import Allocator
from hloopt.memory_space.allocation.allowed import Allowed
from hloopt.memory_space.allocation.block_prefetch import BlockPrefetches, CustomCallPrefetch
from hloopt.memory_space.allocation.colored import Colored
from hloopt.memory_space.allocation.colorings import Colorings
from hloopt.memory_space.allocation.conversions import Conversions
from hloopt.memory_space.allocation.copies import Copies
from hloopt.memory_space.allocation.cross_program import (
    CrossProgramPrefetch,
    CrossProgramPrefetcher,
)
from hloopt.memory_space.allocation.hints import NO_HINTS, Hints, ValueName
from hloopt.memory_space.allocation.order import (
    ascending_size,
    name_of,
    prefetch_candidates,
    sorted_buffers,
)
from hloopt.memory_space.allocation.placing import BufferPlacer
from hloopt.memory_space.allocation.requests import Reason
from hloopt.memory_space.allocation.scoped import ScopedMemory
from hloopt.memory_space.allocation.segments import SegmentAllocator
from hloopt.memory_space.allocation.slices import Slicer
from hloopt.memory_space.allocation.values import AllocationValue
from hloopt.memory_space.allocation.windows import Window, find_windows
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.costs.pickers import (
    CostAnalysisPicker,
    InstructionCountPicker,
    PrefetchIntervalPicker,
)
from hloopt.memory_space.heap.moving import Mover
from hloopt.memory_space.ledger.ledger import Ledger
from hloopt.memory_space.loop_optimizer.plan import LoopPlan
from hloopt.memory_space.options.filters import PreferredTimes, prefetch_overrides
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.memory_space.program import Program


@dataclass(slots=True)
class Plan:
    """Where values lie when, and what else takes place in alternate memory."""

    program: Program
    values: list[AllocationValue]
    scoped: ScopedMemory
    prefetched: dict[Buffer, CrossProgramPrefetch]
    """Parameters that are loaded before the program runs."""
    annotated: list[Buffer]
    """Parameters that the text puts into alternate memory."""
    windows: list[Window]
    custom_calls: list[CustomCallPrefetch]
    """Prefetches that custom calls do, which are put where their places are free."""
    costs: MemorySpaceCosts | None
    loop_plan: LoopPlan
    outside: dict[Buffer, Reason]
    """Buffers of which a use reads default memory, and why."""
    unfit: dict[Buffer, Reason]
    """Buffers that alternate memory cannot take, and why."""


def plan_memory_spaces(
    module: Module, options: MemorySpaceOptions, hints: Hints = NO_HINTS
) -> Plan:
    """Plan which values of a scheduled module live in alternate memory.

    Near-linear in the module's size. Raises PassRefused for options that cannot be satisfied.
    """
    program = Program.of(module)
    copies = _copies(module, program, options)
    allowed = Allowed(program, options, hints.denied)
    unfit = dict(_unfit(allowed))
    candidates = [buffer for buffer in program.buffers.all if buffer not in unfit]
    colored = Colored(copies, Colorings.of(program, options))
    placer = BufferPlacer(SegmentAllocator(copies), allowed, colored, Conversions())
    mover = Mover.of(options, copies.ledger.heap, copies.limit)
    allocator = Allocator(placer, mover)
    annotated = [b for b in candidates if _is_annotated_parameter(program, colored, b)]
    results = [b for b in candidates if b not in annotated and _is_placed_result(colored, b)]
    candidates = [b for b in candidates if b not in results]
    copies.limit -= sum(buffer.size for buffer in results)
    blocks = BlockPrefetches.of(allocator)
    scoped = allocator.scoped = ScopedMemory.of(program, options, copies.ledger)
    colored.reserve(b for b in candidates if b not in blocks.final)
    loaded = blocks.final | blocks.sources
    prefetched = _prefetch_parameters(allocator, annotated, candidates, loaded)
    allocator.require_entry_places()
    final = {value for buffer in (*prefetched, *blocks.final) for value in buffer.values}
    placer.conversions = Conversions.of(program, options, candidates, final)
    placer.loop_plan = _loop_plan(copies, {*candidates} - {*prefetched} - loaded)
    outside = {}
    for buffer in _in_order(placer, candidates, hints.ranks):
        if buffer not in prefetched:
            outside[buffer] = allocator.allocate(buffer)
    windows = find_windows(program, allocator.values, copies.ledger, options, copies.limit)
    if options.expanded_scoped_alternate_memory_mode == "enabled":
        scoped.expand(copies.ledger, copies.limit)
    if options.verify:
        _verify(copies.ledger)
    return Plan(
        program,
        allocator.values,
        scoped,
        prefetched,
        annotated,
        windows,
        blocks.custom_calls,
        copies.costs,
        placer.loop_plan,
        outside,
        unfit,
    )


def _unfit(allowed: Allowed) -> Iterator[tuple[Buffer, Reason]]:
    """The buffers that cannot be in alternate memory, and why."""
    for buffer in allowed.program.buffers.all:
        if buffer.size > allowed.options.max_size_in_bytes:
            yield buffer, Reason.TOO_LARGE
        elif not allowed.buffer(buffer):
            yield buffer, Reason.REQUIRED


def _verify(ledger: Ledger) -> None:
    """Raise a Defect where two places overlap at one time."""
    conflict = ledger.heap.conflict()
    if conflict is not None:
        address, time = conflict
        raise Defect(f"two values lie at byte {address} of alternate memory at time {time}")


def _copies(module: Module, program: Program, options: MemorySpaceOptions) -> Copies:
    costs = None
    seconds = [1.0] * program.end
    if options.cost_model is not None:
        costs = MemorySpaceCosts(module, options.cost_model)
        factors = options.async_instruction_bw_adjustment_factors
        seconds = costs.copy_resources(program.schedule, factors)
    picker = _picker(program, options, costs)
    overrides = prefetch_overrides(options.preferred_prefetch_overrides)
    return Copies(
        program,
        options,
        Ledger.of(options.alignment_in_bytes, seconds),
        picker,
        costs,
        options.max_size_in_bytes,
        PreferredTimes(overrides, program.schedule),
        Slicer(program, options, picker),
    )


def _loop_plan(copies: Copies, candidates: set[Buffer]) -> LoopPlan:
    """The plan for unrolled loops; without a cost model there is none."""
    options = copies.options
    if not options.memory_bound_loop_optimizer_options.enabled or copies.costs is None:
        return LoopPlan()
    return LoopPlan.of(
        copies.program,
        copies.costs,
        options.memory_bound_loop_optimizer_options,
        max_size=copies.limit,
        alignment=options.alignment_in_bytes,
        is_allowed=candidates.__contains__,
    )


def _picker(
    program: Program, options: MemorySpaceOptions, costs: MemorySpaceCosts | None
) -> PrefetchIntervalPicker:
    wanted = options.prefetch_interval_picker
    if wanted.kind == "instruction-count":
        return InstructionCountPicker(wanted.min_overlap, wanted.max_overlap)
    if costs is None:
        raise PassRefused(
            "the prefetch interval picker cost-analysis needs a cost model",
            help="give the option cost_model",
        )
    return CostAnalysisPicker(
        costs,
        program.schedule,
        min_overlap_to_async_copy_ratio=wanted.min_overlap_to_async_copy_ratio,
        preferred_overlap_to_async_copy_ratio=wanted.preferred_overlap_to_async_copy_ratio,
        max_overlap_to_mem_size_async_copy_ratio=wanted.max_overlap_to_mem_size_async_copy_ratio,
        max_size=options.max_size_in_bytes,
    )


def _in_order(
    placer: BufferPlacer, candidates: list[Buffer], ranks: Mapping[ValueName, int]
) -> list[Buffer]:
    """Buffers in the order of placing: what has to be in alternate memory first."""
    copies, colorings = placer.copies, placer.colored.colorings
    program, options = copies.program, copies.options
    tied = [program.buffers.of_value[value] for value in placer.conversions.by_source]
    buffers = dict.fromkeys((*candidates, *tied))
    found = sorted_buffers(program, buffers, options, copies.costs)
    if ranks:
        found.sort(key=lambda buffer: ranks.get(name_of(program, buffer), 0))

    def urgency(buffer: Buffer) -> tuple[int, ...]:
        if not colorings.precolored.isdisjoint(buffer.values):
            return (0,)
        if options.has_block_prefetches:
            return 1, *ascending_size(program, buffer)
        is_early = options.allocate_colored_buffers_early
        return (1,) if is_early and colorings.times(program, buffer.values) else (2,)

    found.sort(key=urgency)
    if options.autotuning_config is None:
        return found
    if sorted(options.autotuning_config) != list(range(len(found))):
        raise PassRefused(
            f"autotuning_config is no permutation of {counted(len(found), 'buffer')}",
            help="give the numbers from 0 in the order in which the buffers are to be placed",
        )
    return [found[number] for number in options.autotuning_config]


def _is_annotated_parameter(program: Program, colored: Colored, buffer: Buffer) -> bool:
    """Whether a buffer is a parameter of the entry that the text puts into alternate memory."""
    definer = program.flow.definer
    return any(
        definer[value].opcode is Opcode.PARAMETER and definer[value].parent.is_entry
        for value in colored.colorings.precolored.intersection(buffer.values)
    )


def _is_placed_result(colored: Colored, buffer: Buffer) -> bool:
    """Whether a buffer is a result of the entry that the text puts into alternate memory."""
    return buffer.is_live_out and not colored.colorings.precolored.isdisjoint(buffer.values)


def _prefetch_parameters(
    allocator: Allocator, annotated: list[Buffer], candidates: list[Buffer], loaded: set[Buffer]
) -> dict[Buffer, CrossProgramPrefetch]:
    """Cross-program prefetches by the buffers that need no other place; none are of `loaded`."""
    copies = allocator.copies
    if not copies.options.enable_cross_program_prefetch and not annotated:
        return {}
    prefetcher = CrossProgramPrefetcher(copies, sum(b.size for b in candidates))
    taken = loaded.union(annotated)
    eligible = [b for b in candidates if b not in taken and prefetcher.is_candidate(b)]
    if copies.options.default_cross_program_prefetch_heuristic:
        chosen = sorted_buffers(copies.program, eligible, copies.options, copies.costs)
    else:
        chosen = prefetch_candidates(copies.program, eligible, copies.options)
    found = prefetcher.prefetch(annotated, chosen)
    allocator.add(owner for _, _, owner in found)
    return {buffer: prefetch for buffer, prefetch, _ in found}
