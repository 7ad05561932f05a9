"""The options of ALGEBRAIC_SIMPLIFIER.md."""

ALGEBRAIC_OPTIONS = frozenset(
    (
        *("is_layout_sensitive", "reshape_is_bitcast", "conv_is_lowerable"),
        *("enable_dot_strength_reduction", "enable_dot_to_multiply_rewrite"),
        *("supports_non_canonical_dots", "enable_move_dot_param_to_rhs"),
        *("use_associative_reordering", "associative_reordering_threshold"),
        *("raise_slice_and_reduce_through_dot", "raise_slice_and_reduce_through_dot_threshold"),
        *("enable_conv_simplification", "enable_conv_operand_swap"),
        *("enable_conv_add_multiply_reorder", "enable_folding_pad_into_convolution"),
        *("enable_scalar_multiply_reduction", "enable_floats_are_real", "enable_fast_math"),
        *("minmax_propagate_nan", "enable_window_reduce_to_reduce_replacement"),
        *("enable_reduce_of_reshape", "enable_negative_padding_replacement"),
        "unconditionally_simplify_reduce_of_transpose_or_reshape",
        "enable_unconditional_reduce_of_concat_replacement",
        *("enable_sink_broadcast", "enable_broadcast_degenerate_dimension"),
        *("very_small_gather_size", "use_convert_constant_folding"),
        "disable_dynamic_slice_to_slice_conversion",
        "rewrite_reshape_transpose_as_slice_concatenate",
        *("enable_hoist_transpose_of_reshape", "enable_fold_transpose_into_scatter"),
        "rewrite_no_op_bitcast_convert_to_bitcast",
        *("enable_remove_no_op_reduce_precision", "enable_conditional_simplification"),
        *("executing_on_cpu", "enable_onednn_support"),
        "cudnn_batchnorm_forward_training_metadata",
    )
)
