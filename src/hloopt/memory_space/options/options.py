"""The options of memory space assignment, by XLA's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from hloopt.memory_space.options.cost_options import CostOptions
from hloopt.memory_space.options.parts import (
    Coloring,
    ContiguousRule,
    Description,
    LoopOptimizerOptions,
    OpcodeList,
    PickerOptions,
    ScopedRule,
    SlicedPrefetchOptions,
    SortOptions,
    SpanSize,
)
from hloopt.options import Bytes, PassOptions, option
from hloopt.search_budget import SearchLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySpaceOptions(PassOptions):
    """The options of an assignment, with XLA's defaults."""

    @property
    def has_block_prefetches(self) -> bool:
        """Whether some values are prefetched in blocks, before all others are placed."""
        return self.max_outstanding_block_prefetches > 0

    alternate_memory_space: int = option(1, "number of the small fast memory: S(n) in layouts")
    default_memory_space: int = option(0, "number of the large memory")
    max_size_in_bytes: Bytes = option(0, "bytes of alternate memory")
    alignment_in_bytes: Bytes = option(1, "every place in it starts at a multiple of this")
    prefetch_interval_picker: PickerOptions = option(PickerOptions(), "when copies may start")
    cost_model: CostOptions | None = option(
        None, "rates of both memories and of arithmetic; without, a copy takes 0.1 instructions"
    )
    sort: SortOptions = option(SortOptions(), "the order in which buffers get their places")
    max_outstanding_prefetches: int = option(
        -1, "copies into alternate memory that may run at one time; negative: no limit"
    )
    max_outstanding_evictions: int = option(
        -1, "copies out of alternate memory that may run at one time; negative: no limit"
    )
    while_use_extra_outstanding_prefetch_limit: int = option(
        0, "prefetches more for what a while reads"
    )
    max_retries: int = option(1, "attempts per buffer; each later one lets evictions take longer")
    max_repacks: int = option(
        0, "times at which all places may be found anew where a buffer finds none"
    )
    repacker: Literal["best-fit", "best-fit-few-permutations"] | Callable[..., bool] | None = (
        option(None, "how places are found anew where a buffer finds no room")
    )
    repack_after_every_allocation: bool = option(False, "find all places anew before each buffer")
    enable_cross_program_prefetch: bool = option(True, "load parameters before the program runs")
    max_cross_program_prefetches: int = option(1, "parameters that may be loaded so; negative: all")
    default_cross_program_prefetch_heuristic: bool = option(
        False, "choose them in the order of all buffers"
    )
    enable_cross_program_prefetch_freeing: bool = option(
        True, "let other values have their place between their last use and the end"
    )
    cross_program_prefetch_permissive_mode: bool = option(
        False, "load parameters whose users do not tell that they are weights"
    )
    enable_while_redundant_eviction_elimination: bool = option(
        True, "keep a copy in default memory across a loop that only passes a value through"
    )
    use_repeated_instance_for_preferred_prefetch_time: bool = option(
        False, "start a prefetch as long before its use as for the last equal instruction"
    )
    enforce_prefetch_fifo_order: bool = option(
        False, "no prefetch starts before another one and ends after it"
    )
    enable_sync_copy_replacement: bool = option(False, "make copies asynchronous that load a value")
    enable_sync_slice_replacement: bool = option(
        False, "make slices asynchronous that load a part of a value"
    )
    enable_sync_custom_fusion_replacement: bool = option(
        False, "make custom fusions asynchronous that load a value"
    )
    extend_async_copies_limit_for_sync_mem_op_conversion: int = option(
        0, "prefetches more for operations made asynchronous"
    )
    inefficient_use_to_copy_ratio: float = option(
        0.0, "give a value up whose copies move more than this part of what its uses read"
    )
    always_spill_to_default_memory: bool = option(
        False, "evict every value at once, and load it right before each use"
    )
    enable_window_prefetch: bool = option(
        False, "load the first piece that a fusion reads of an operand before the fusion"
    )
    window_prefetch_max_operands: int = option(
        1024, "most operands of a fusion for which this is done"
    )
    window_prefetch_min_span_size: Bytes = option(4096, "least bytes of such a piece")
    window_prefetch_mode: Literal["exposure"] = option(
        "exposure", "whether a piece needs its place only while the fusion runs"
    )
    reduce_scoped_memory_limit: bool = option(
        False, "ask again for scoped memory once operands and results have their places"
    )
    allocate_reserved_scoped_memory_at_same_offset: bool = option(
        True, "put all scoped memory in one place"
    )
    expanded_scoped_alternate_memory_mode: Literal["disabled", "enabled"] = option(
        "disabled", "whether instructions with scoped memory get all that is free beside them"
    )
    post_module_scoped_alternate_memory_size_in_bytes: Bytes = option(
        0, "bytes needed when the program is over"
    )
    allocate_colored_buffers_early: bool = option(
        True, "place buffers first that have to be in alternate memory"
    )
    buffer_colorings: tuple[Coloring, ...] = option(
        (), "positions and uses whose memory space is fixed"
    )
    max_outstanding_block_prefetches: int = option(
        0, "block prefetches that may run at one time; 0: none"
    )
    reserved_bytes_for_block_prefetches: Bytes = option(0, "bytes that block prefetches may use")
    block_prefetched_positions: tuple[str, ...] = option(
        (), "instructions whose values are prefetched in blocks"
    )
    preferred_prefetch_overrides: str | tuple[Mapping[str, object], ...] = option(
        (), "when prefetches for some uses should start"
    )
    msa_sort_order_overrides: str | tuple[Mapping[str, object], ...] = option(
        (), "buffers that get their places first or last"
    )
    sliced_prefetch_options: SlicedPrefetchOptions = option(
        SlicedPrefetchOptions(), "whether a prefetch may be done in slices"
    )
    memory_bound_loop_optimizer_options: LoopOptimizerOptions = option(
        LoopOptimizerOptions(), "whether, and how, loops that were unrolled are planned as such"
    )
    search: SearchLimits | None = option(
        None, "look for an assignment that is better by the cost model"
    )
    autotuning_config: tuple[int, ...] | None = option(
        None, "a permutation of the order of buffers"
    )
    verify: bool = option(False, "check that no two places overlap")
    uses_not_allowed: Description | None = option(None, "uses that have to read default memory")
    positions_not_allowed: Description | None = option(
        None, "positions that have to be in default memory"
    )
    reserved_scoped_memory: tuple[ScopedRule, ...] = option(
        (), "scoped memory of instructions, by name or opcode"
    )
    positions_require_contiguous_allocation: tuple[ContiguousRule, ...] = option(
        (), "positions that keep their place until the last use"
    )
    async_slices_implemented: bool | OpcodeList = option(
        False, "whether there are asynchronous slices, or the opcodes for which there are"
    )
    entry_parameters_allowed_in_alternate_memory: bool = option(
        False, "let parameters of the entry lie in alternate memory"
    )
    slice_proposals: Mapping[str, object] | None = option(None, "slices of arrays, by shape")
    custom_call_prefetches: tuple[tuple[str, ...], ...] = option(
        (), "source, start and done of prefetches that custom calls do already"
    )
    custom_fusion_block_prefetch_operand: int | None = option(
        None, "the operand that custom fusions load"
    )
    operand_span_sizes: tuple[SpanSize, ...] = option(
        (), "bytes of the piece that a fusion reads of an operand at a time"
    )
    async_instruction_bw_adjustment_factors: Mapping[str, float] | None = option(
        None, "part of the bandwidth that asynchronous instructions leave to copies, by name"
    )
