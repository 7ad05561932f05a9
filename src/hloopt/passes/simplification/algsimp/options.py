"""The options of the algebraic simplifier, by XLA's names and with its defaults."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import Shape
from hloopt.pass_framework.base import PassOptions, option
from hloopt.passes.rewriting.rules.rule import Match


@dataclass(frozen=True, slots=True, kw_only=True)
class AlgsimpOptions(PassOptions):
    """Which rules run, and how far they go."""

    is_layout_sensitive: bool = option(
        False, "layouts are assigned: shapes agree with layouts, and rules for bitcasts run"
    )
    reshape_is_bitcast: Literal["by_layout", "never"] | Callable[[Shape, Shape], bool] = option(
        "by_layout", "which reshapes move nothing in memory, where layouts are assigned"
    )
    conv_is_lowerable: Callable[[Instruction], bool] | None = option(
        None, "whether the device can run a convolution with swapped operands; none: any"
    )
    run_to_fixed_point: bool = option(True, "repeat until nothing changes; false: one sweep")
    enable_dot_strength_reduction: bool = option(
        True, "dots with a vector become multiply and reduce, reduces of batch dots dots"
    )
    enable_dot_to_multiply_rewrite: bool = option(
        True, "dots without contracting dimensions become multiplications"
    )
    supports_non_canonical_dots: bool = option(
        True, "dots may have several free or contracting dimensions, anywhere"
    )
    enable_move_dot_param_to_rhs: bool = option(
        False, "a left operand that is like a parameter goes to the right"
    )
    use_associative_reordering: bool = option(False, "reorder chains of dots by their flops")
    associative_reordering_threshold: float = option(
        2.0, "the least ratio of flops before and after a reordering"
    )
    raise_slice_and_reduce_through_dot: bool = option(
        False, "slices and reduces of dots become dots of slices and reduces"
    )
    raise_slice_and_reduce_through_dot_threshold: float = option(
        2.0, "the least ratio of flops before and after that"
    )
    enable_conv_simplification: bool = option(True, "1x1 convolutions become dots, with layouts")
    enable_conv_operand_swap: bool = option(
        True, "swap input and kernel of a convolution where the kernel is larger"
    )
    enable_conv_add_multiply_reorder: bool = option(
        False, "a constant factor behind convolution and bias goes into the kernel"
    )
    enable_folding_pad_into_convolution: bool = option(True, "pads become padding of windows")
    enable_scalar_multiply_reduction: bool = option(
        False, "constant factors of convolutions go to the smallest of their tensors"
    )
    enable_floats_are_real: bool = option(False, "A·C + B·C becomes (A+B)·C for any float C")
    enable_fast_math: bool = option(False, "run rules that ignore NaN, infinity and rounding")
    minmax_propagate_nan: bool = option(
        True, "maximum and minimum give NaN for NaN, so that one with the identity may go"
    )
    enable_window_reduce_to_reduce_replacement: bool = option(
        True, "reduce-windows over whole dimensions become reduces"
    )
    enable_reduce_of_reshape: bool = option(True, "reduces of reshapes become simpler")
    unconditionally_simplify_reduce_of_transpose_or_reshape: bool = option(
        False, "also where the transpose or reshape has other users"
    )
    enable_unconditional_reduce_of_concat_replacement: bool = option(
        True, "reduces of concatenates are split even if the pieces differ in size"
    )
    enable_negative_padding_replacement: bool = option(
        True, "pads with negative edges become a pad and a slice"
    )
    enable_sink_broadcast: bool = option(
        True, "elementwise operations go above the broadcasts of their operands"
    )
    enable_broadcast_degenerate_dimension: bool = option(
        True, "dimensions of size 1 are dropped below a broadcast"
    )
    very_small_gather_size: int = option(4, "gathers from at most so many elements become selects")
    use_convert_constant_folding: bool = option(False, "convert constants to narrower types")
    disable_dynamic_slice_to_slice_conversion: bool = option(
        False, "dynamic-slices with constant offsets stay"
    )
    rewrite_reshape_transpose_as_slice_concatenate: bool = option(
        True, "space-to-depth by reshape and transpose becomes slices and a concatenate"
    )
    enable_hoist_transpose_of_reshape: bool = option(
        False, "a transpose between two reshapes goes behind the second"
    )
    enable_fold_transpose_into_scatter: bool = option(
        False, "a transposed scatter becomes a scatter of transposed operands"
    )
    rewrite_no_op_bitcast_convert_to_bitcast: bool = option(
        False, "bitcast-converts that move nothing become bitcasts, with layouts"
    )
    enable_remove_no_op_reduce_precision: bool = option(
        False, "drop a reduce-precision to the precision of its type"
    )
    enable_conditional_simplification: bool = option(
        False, "a conditional on a converted pred becomes one on the pred"
    )
    executing_on_cpu: bool = option(False, "as for XLA:CPU: fewer dots become reduces")
    enable_onednn_support: bool = option(
        False, "on CPU bf16 convolutions that oneDNN does not take are computed in f32"
    )
    cudnn_batchnorm_forward_training_metadata: str = option(
        "", "the custom call whose output 2 is positive"
    )
    preserve: Literal["bits", "rounding", "finite"] = option(
        "finite", "leave out rules that keep less of the results: every bit, floats up to "
        "rounding, or the same on inputs without special values"
    )  # fmt: skip
    disable_rules: tuple[str, ...] = option((), "rules to leave out, by their names in the docs")


OPTION_GROUPS = {
    "What runs": (
        *("is_layout_sensitive", "run_to_fixed_point", "preserve", "disable_rules"),
        *("enable_fast_math", "enable_floats_are_real", "minmax_propagate_nan"),
        *("executing_on_cpu", "reshape_is_bitcast"),
    ),
    "Dots": (
        *("enable_dot_strength_reduction", "enable_dot_to_multiply_rewrite"),
        *("supports_non_canonical_dots", "enable_move_dot_param_to_rhs"),
        *("use_associative_reordering", "associative_reordering_threshold"),
        "raise_slice_and_reduce_through_dot",
        "raise_slice_and_reduce_through_dot_threshold",
    ),
    "Convolutions": (
        *("enable_conv_simplification", "enable_conv_operand_swap", "conv_is_lowerable"),
        *("enable_conv_add_multiply_reorder", "enable_folding_pad_into_convolution"),
        *("enable_scalar_multiply_reduction", "enable_onednn_support"),
    ),
    "Reduces and windows": (
        *("enable_window_reduce_to_reduce_replacement", "enable_reduce_of_reshape"),
        "unconditionally_simplify_reduce_of_transpose_or_reshape",
        "enable_unconditional_reduce_of_concat_replacement",
    ),
    "Rearrangements": (
        *("enable_sink_broadcast", "enable_broadcast_degenerate_dimension"),
        *("enable_negative_padding_replacement", "very_small_gather_size"),
        "disable_dynamic_slice_to_slice_conversion",
        "rewrite_reshape_transpose_as_slice_concatenate",
        *("enable_hoist_transpose_of_reshape", "enable_fold_transpose_into_scatter"),
    ),
    "Types and the rest": (
        *("use_convert_constant_folding", "rewrite_no_op_bitcast_convert_to_bitcast"),
        *("enable_remove_no_op_reduce_precision", "enable_conditional_simplification"),
        "cudnn_batchnorm_forward_training_metadata",
    ),
}
"""Headings of the page of the pass, and the options under each."""


class AlgsimpMatch(Match):
    """A match with the options of the algebraic simplifier."""

    __slots__ = ()
    options: AlgsimpOptions
