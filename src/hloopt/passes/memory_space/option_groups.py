"""The options of memory space assignment by use, for its page in docs/passes/."""

from __future__ import annotations

MEMORY_SPACE_ASSIGNMENT = {
    "The memories": (
        *("alternate_memory_space", "default_memory_space", "max_size_in_bytes"),
        *("alignment_in_bytes", "cost_model", "async_instruction_bw_adjustment_factors"),
    ),
    "The order of buffers": (
        *("sort", "msa_sort_order_overrides", "autotuning_config"),
        *("max_retries", "max_repacks", "repacker", "repack_after_every_allocation"),
        *("inefficient_use_to_copy_ratio", "search"),
    ),
    "Prefetches and evictions": (
        *("prefetch_interval_picker", "preferred_prefetch_overrides"),
        *("max_outstanding_prefetches", "max_outstanding_evictions"),
        "while_use_extra_outstanding_prefetch_limit",
        *("enforce_prefetch_fifo_order", "always_spill_to_default_memory"),
        "use_repeated_instance_for_preferred_prefetch_time",
        "enable_while_redundant_eviction_elimination",
        *("sliced_prefetch_options", "slice_proposals"),
    ),
    "Parameters loaded before the program runs": (
        *("enable_cross_program_prefetch", "max_cross_program_prefetches"),
        "default_cross_program_prefetch_heuristic",
        *("enable_cross_program_prefetch_freeing", "cross_program_prefetch_permissive_mode"),
    ),
    "Operations made asynchronous": (
        *("enable_sync_copy_replacement", "enable_sync_slice_replacement"),
        *("enable_sync_custom_fusion_replacement", "async_slices_implemented"),
        "extend_async_copies_limit_for_sync_mem_op_conversion",
    ),
    "Values and uses": (
        *("uses_not_allowed", "positions_not_allowed", "buffer_colorings"),
        *("allocate_colored_buffers_early", "positions_require_contiguous_allocation"),
        "entry_parameters_allowed_in_alternate_memory",
    ),
    "Scoped memory": (
        *("reserved_scoped_memory", "allocate_reserved_scoped_memory_at_same_offset"),
        *("reduce_scoped_memory_limit", "expanded_scoped_alternate_memory_mode"),
        "post_module_scoped_alternate_memory_size_in_bytes",
    ),
    "Windows, blocks and loops": (
        *("enable_window_prefetch", "window_prefetch_max_operands"),
        *("window_prefetch_min_span_size", "window_prefetch_mode", "operand_span_sizes"),
        *("max_outstanding_block_prefetches", "reserved_bytes_for_block_prefetches"),
        *("block_prefetched_positions", "custom_call_prefetches"),
        *("custom_fusion_block_prefetch_operand", "memory_bound_loop_optimizer_options"),
    ),
    "Checks": ("verify",),
}
