"""The options of MEMORY_SPACE_ASSIGNMENT.md: sections 2, 16 and 17."""

from __future__ import annotations

_ASSIGNMENT = frozenset(
    (
        *("alternate_memory_space", "default_memory_space", "max_size_in_bytes"),
        *("alignment_in_bytes", "prefetch_interval_picker", "cost_analysis", "cost_model"),
        *("buffer_interval_comparator", "sort", "max_outstanding_prefetches"),
        *("max_outstanding_evictions", "while_use_extra_outstanding_prefetch_limit"),
        *("max_retries", "max_repacks", "repacker", "repack_after_every_allocation"),
        *("enable_cross_program_prefetch", "max_cross_program_prefetches"),
        *("default_cross_program_prefetch_heuristic", "enable_cross_program_prefetch_freeing"),
        *("cross_program_prefetch_permissive_mode", "enforce_prefetch_fifo_order"),
        "enable_while_redundant_eviction_elimination",
        "use_repeated_instance_for_preferred_prefetch_time",
        *("enable_sync_copy_replacement", "enable_sync_slice_replacement"),
        "enable_sync_custom_fusion_replacement",
        "extend_async_copies_limit_for_sync_mem_op_conversion",
        *("inefficient_use_to_copy_ratio", "always_spill_to_default_memory"),
        *("enable_window_prefetch", "window_prefetch_max_operands"),
        *("window_prefetch_min_span_size", "window_prefetch_mode"),
        *("reduce_scoped_memory_limit", "allocate_reserved_scoped_memory_at_same_offset"),
        *("expanded_scoped_alternate_memory_mode", "allocate_colored_buffers_early"),
        *("post_module_scoped_alternate_memory_size_in_bytes", "buffer_colorings"),
        *("max_outstanding_block_prefetches", "reserved_bytes_for_block_prefetches"),
        *("block_prefetched_positions", "preferred_prefetch_overrides"),
        *("msa_sort_order_overrides", "sliced_prefetch_options"),
        *("memory_bound_loop_optimizer_options", "autotuning_config", "verify"),
        *("uses_not_allowed", "positions_not_allowed", "reserved_scoped_memory"),
        *("positions_require_contiguous_allocation", "async_slices_implemented"),
        *("entry_parameters_allowed_in_alternate_memory", "slice_proposals"),
        *("custom_call_prefetches", "custom_fusion_block_prefetch_operand"),
        *("operand_span_sizes", "async_instruction_bw_adjustment_factors"),
    )
)

COMPONENT_OPTIONS = {
    "memory-space-assignment": _ASSIGNMENT,
    "prefetch-interval-picker": _ASSIGNMENT,
    "memory-space-cost-analysis": _ASSIGNMENT,
    "memory-space-runtime": _ASSIGNMENT | {"outstanding"},
    "memory-bound-loop-optimizer": _ASSIGNMENT | {"loop"},
    "buffer-live-ranges": frozenset(),
}
"""The options of the pass and of each component whose records have a module."""

NESTED_WORDS = frozenset(
    (
        *("kind", "instruction-count", "min_overlap", "max_overlap", "cost-analysis"),
        *("fixed_seconds_per_copy", "memory-boundedness", "overrides", "names", "first"),
        *("opcodes", "position", "use", "operand", "index", "memory_space", "operand_names"),
        *("other_threads", "no_operand_in_alternate_memory", "no_output_in_alternate_memory"),
        *("bytes", "name", "opcode", "not_index", "fake", "moves", "always_modified"),
        *("best-fit", "shape", "slice", "error", "start", "end", "size", "offset", "group"),
        *("slices", "given", "reads", "writes", "prefetch_eagerness", "before_instruction"),
        *("after_instruction", "assign_first", "assign_last", "assign_priority"),
        *("apply_to_cross_program_prefetches", "exposure", "max_slices", "min_bytes"),
        *("preferred_slice_size", "all_slice_time_permutations_threshold", "disabled"),
        *("min_num_iterations", "desired_copy_ratio", "min_overlap_to_async_copy_ratio"),
        *("preferred_overlap_to_async_copy_ratio", "max_overlap_to_mem_size_async_copy_ratio"),
        *("pipeline_overhead_window_size_in_bytes", "enabled"),
        "allow_unsatisfied_fully_pipelined_prefetch",
    )
)
"""Words in the values of these options, which are not checked here."""
