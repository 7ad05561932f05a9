"""The passes and analyses that the documents name, and the options that they give them.

A record of a pass that hloopt does not have, or with an option that our pass does not have, is
skipped if the documents know the name, and fails if they do not.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from conformance_lib.forms import unknown_words
from conformance_lib.vocabulary.algebraic_options import ALGEBRAIC_OPTIONS
from conformance_lib.vocabulary.memory_space_options import COMPONENT_OPTIONS
from hloopt.diagnostics import PipelineError
from hloopt.pass_framework.options import option_infos
from hloopt.pass_framework.presets import PRESETS
from hloopt.pass_framework.registry import ALIASES, PASSES, find_pass

GENERAL = frozenset(("api", "until_fixed_point", "execution_threads"))
"""Options that any pass may have."""


class Known(NamedTuple):
    """A pass as a document describes it."""

    options: frozenset[str]
    apis: frozenset[str] = frozenset()
    """The library entry points that `api` names."""


def _known(options: str = "", apis: str = "") -> Known:
    return Known(frozenset(options.split()), frozenset(apis.split()))


_CALL_GRAPH = {
    "call-graph": _known("visit_unreachable_nodes", "analysis"),
    "reachability": _known("", "analysis"),
    "call-inliner": _known(
        "single_call_site update_domain composites_to_preserve override_policy "
        "propagate_metadata call",
        "inline_one_call",
    ),
    "call-splitter": _known("boundary direction call_predicate"),
    "cse": _known(
        "is_layout_sensitive ignore_control_dependencies should_eliminate_computation "
        "should_eliminate_instruction should_combine_constant"
    ),
    "dce": _known(
        "remove_cross_partition_collective_ops use_call_analysis "
        "remove_dead_parameters_from_entry_computation"
    ),
    "flatten-call-graph": _known("skip_cloning"),
    "hlo-computation-deduplicator": _known("mark_fusion_duplications"),
    "permute-fusion-operands": _known("fusion permutation", "permute_fusion_operands"),
    "tuple-simplifier": _known("exclude_entry_computation"),
    "replication-analysis": _known(
        "cross_partition_spmd partial_replication loops_known_with_same_iterations "
        "parameter_replicated_at_leaf_buffers"
    ),
}
_LOOPS = {
    "collective-pipeliner": _known(
        "pipelining_direction should_process acceptable_formatting reuse_pipelined_op_buffer "
        "level_to_operate_on max_pipelining_per_loop last_run pipeline_use_tree "
        "process_different_sized_ops should_allow_loop_variant_parameter_in_chain "
        "should_allow_control_dependencies should_add_loop_invariant_op_in_chain "
        "additional_chain_start_op_finder postprocess_backward_peeled_op "
        "postprocess_backward_rotated_op postprocess_backward_peeled_trailing_op "
        "postprocess_pipelined_ops postprocess_transformed_while_loop "
        "collective_size_threshold_to_delay_sinking delay_sinking_large_collectives "
        "unique_channel_id",
        "predicate_only",
    ),
    "conditional-code-motion": _known(
        "is_layout_sensitive pursue_full_conditional_code_motion search_config "
        "memory_increase_allowance"
    ),
    "copy-insertion": _known(
        "use_region_based_live_range_analysis should_skip_removal "
        "insert_post_scheduling_control_dependencies alias_info",
        "remove-unnecessary-copies",
    ),
    "rematerialization": _known(
        "memory_limit_bytes recompute compress host_offload algorithm block_size_limit "
        "block_rematerialization_factor min_remat_size size_function compact_shape_function "
        "host_memory_space bandwidth_to_host_bytes_per_second "
        "bandwidth_from_host_bytes_per_second flops_per_second transcendentals_per_second "
        "bytes_per_second async_computation_parallelism on_rematerialized "
        "simulated_elapsed_seconds"
    ),
    "while-loop-all-reduce-code-motion": _known(
        "enable_reduce_scatter run_setup_passes "
        "xla_while_loop_all_reduce_dus_code_motion_max_size_bytes"
    ),
    "reorder-convert-reduce-add": _known("enable_reduce_scatter"),
    "while-loop-simplifier": _known("simplify_compare_instrs"),
    "reshape-mover": _known("reshape_of_1d_broadcast_is_cheap"),
}
_FLOATS = {
    "bfloat16-propagation": _known("float_support"),
    "bfloat16-conversion-folding": _known("float_support"),
    "float-normalization": _known(
        "float_support low_precision_type high_precision_type support skip_computations"
    ),
    "bf16-mixed-precision-removal": _known(),
    "block-scaling-rewriter": _known(
        "cudnn_version fusion", "cudnn_supports_scaled_dot cudnn_add_scale_swizzle"
    ),
    "scaled-dot-rewriter": _known("filter"),
    "composite-rewriter": _known(),
    "convolution-type-canonicalizer": _known(),
    "triton-gemm-rewriter": _known(),
    "none": _known(),
    "algebraic-simplifier": Known(
        ALGEBRAIC_OPTIONS | {"run_to_fixed_point"}, frozenset(("is_non_negative",))
    ),
    "algsimp": Known(ALGEBRAIC_OPTIONS | {"run_to_fixed_point"}, frozenset(("is_non_negative",))),
}
_FILTER = "extra_filter"
_EVERYDAY = {
    "transpose-folding": _known("dot_can_fold_transpose_operand transposable_conv_operands"),
    "dot-merger": _known("max_size_to_merge queue_id"),
    "dot_normalizer": _known(_FILTER),
    "operand_upcaster": _known(_FILTER),
    "result_caster": _known(_FILTER),
    "scatter_simplifier": _known("", "is_simplified_scatter"),
    "gather_expander": _known("mode"),
    "while-loop-invariant-code-motion": _known(
        "hoist_constants hoist_reshapes hoist_other hoist_size_inflation_ratio shape_size_function"
    ),
    "while-loop-expensive-invariant-code-motion": _known(
        "worth_hoisting_individually shape_size_function"
    ),
    "while-loop-constant-sinking": _known("sink_broadcast_of_constants sink_only_scalar_constants"),
    "batchnorm_expander": _known("rewrite_training_op rewrite_inference_op rewrite_grad_op"),
    "topk-decomposer": _known("should_decompose"),
    "topk-rewriter": _known("is_profitable_to_convert"),
    "tree_reduction_rewriter": _known("reduce_window_size filter"),
    "reduce-window-rewriter": _known("base_length"),
    "associative-scan-rewriter": _known("base_length"),
    "reduce-decomposer": _known("custom_layout_allowed"),
    "convolution-group-converter": _known(
        "should_expand is_cost_viable convert_batch_groups_only filter_expansion"
    ),
    "all-gather-dynamic-slice-simplifier": _known(
        "allow_multiple_split_dims allow_intervening_reshape min_rank "
        "allow_intervening_bitcast allow_multiple_users"
    ),
    "all_to_all_decomposer": _known("decompose_to_tuple min_array_rank"),
    "optimize_input_output_buffer_alias": _known("registered_buffer_donor_only shape_size_fn"),
    "despecializer": _known(
        "deconstruct_reduce_window_to_reduce_broadcast "
        "assume_gather_indices_in_bound_rewrite_to_copy"
    ),
    "instruction-hoister": _known("hoist_parameters hoist_constants hoist_gtes hoist_bitcasts"),
}
_WITHOUT_OPTIONS = (
    *("call-parameter-cleanup", "propagate-call-metadata", "unflatten-call-graph"),
    *("remove-unnecessary-copies", "add-special-case-copies", "reorder-reduce-transpose"),
    *("while-loop-trip-count-annotator", "hlo-memory-scheduler", "verifier", "shape-inference"),
    *("dot_decomposer", "dot_dimension_merger", "dot_dimension_sorter"),
    *("batch-dot-simplification", "reshape-decomposer", "gather_simplifier"),
    *("batched_gather_scatter_normalizer", "broadcast_canonicalizer", "dynamic-index-splitter"),
    *("select_and_scatter_expander", "dynamic-dimension-simplifier", "simplify-fp-conversions"),
    *("convert-mover", "logistic-expander", "bitcast_dtypes_expander", "stable-sort-expander"),
    *("slice-sinker", "sharding-remover", "collective-quantizer", "windowed-einsum-handler"),
    *("convert-memory-placement-to-internal-annotations", "host-offload-legalize", "defuser"),
    *("ReduceWindowToReduceAndBroadcast", "AssumeGatherIndicesInBoundRewriteToCopy"),
)

DOCUMENTED: Mapping[str, Known] = {
    **dict.fromkeys(_WITHOUT_OPTIONS, _known()),
    **_CALL_GRAPH,
    **_LOOPS,
    **_FLOATS,
    **_EVERYDAY,
    **{name: Known(options) for name, options in COMPONENT_OPTIONS.items()},
}


def pass_problem(name: str, options: Mapping[str, object]) -> str | None:
    """An objection to the name of a pass, of an option, or of an `api`."""
    key = name.replace("_", "-")
    known = _by_name().get(key)
    ours = PASSES.keys() | ALIASES.keys() | PRESETS.keys()
    if known is None and key not in ours:
        return unknown_words("pass", [name], [*DOCUMENTED, *ours])
    documented = known.options if known else frozenset()
    api = options.get("api")
    if api is not None and api not in (known.apis if known else ()):
        apis = known.apis if known else ()
        return unknown_words(f"api of {name}", [api], apis)
    names = GENERAL | documented | _our_options(key)
    return unknown_words(f"option of {name}", options, names)


def is_missing(name: str) -> bool:
    """Whether hloopt does not have a pass of this name."""
    try:
        find_pass(name)
    except PipelineError:
        return True
    return False


@cache
def _by_name() -> Mapping[str, Known]:
    return {name.replace("_", "-"): known for name, known in DOCUMENTED.items()}


@cache
def _our_options(key: str) -> frozenset[str]:
    """The options of our pass; none where hloopt does not have it."""
    if is_missing(key):
        return frozenset()
    return frozenset(info.name for info in option_infos(find_pass(key)))


def has_option(name: str, option: str) -> bool:
    """Whether our pass has an option."""
    return option in _our_options(name.replace("_", "-"))


def lacks(name: str, option: str) -> bool:
    """Whether our pass does not have an option that the documents give it."""
    known = _by_name().get(name.replace("_", "-"))
    is_documented = known is not None and option in known.options
    return is_documented and not has_option(name, option)
