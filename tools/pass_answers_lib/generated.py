"""The passes that are tried on programs made for them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from random import Random
from typing import NamedTuple

from hloopt.ir import Opcode
from pass_answers_lib.causes import (
    BITCASTS_DO_NOTHING,
    CONVERTS_TO_PRED,
    GATHERS_SCALAR,
    HOISTS_LEFTOVERS,
    JOINS_BY_REDUCE,
    KEEPS_CONVERTED_LAYOUT,
    KEEPS_SCANS,
    LAYOUTS,
    LEFT_TO_LIBRARY,
    MADE_TWICE,
    MOVES_CONTROL,
    PACKS_TOPK,
    READS_OTHER_LAYOUT,
    REPEATS_INIT,
    STOPS_AT_TUPLE,
    Cause,
    are_unsorted,
    count,
    has_control,
)
from pass_answers_lib.dots import (
    MOST_BYTES,
    for_decomposer,
    for_dimension_merger,
    for_merger,
    for_normalizer,
    for_sorter,
)
from pass_answers_lib.elementwise import for_bitcasts, for_conversions, for_logistic
from pass_answers_lib.indexing import (
    for_batching,
    for_broadcasts,
    for_gathers,
    for_index_vectors,
    for_scatters,
    for_sizes,
)
from pass_answers_lib.layers import (
    for_batch_groups,
    for_batch_norms,
    for_feature_groups,
    for_pooling,
    for_topk,
)
from pass_answers_lib.loops import for_loops
from pass_answers_lib.partitions import for_annotations, for_exchanges
from pass_answers_lib.placements import for_placements
from pass_answers_lib.quantized import for_quantizer
from pass_answers_lib.reductions import for_layouts, for_scans, for_tree, for_windows
from pass_answers_lib.typed_products import for_batches_of_one, for_casts, for_transposes


class Generated(NamedTuple):
    """The programs that a pass is tried on."""

    program: Callable[[Random], str]
    causes: tuple[Cause, ...] = ()
    flags: tuple[str, ...] = ()
    """XLA's, under which the pass has the options below."""
    options: str = ""
    """Ours; by default those of the place in XLA's pipeline."""
    is_on_cpu: bool = False
    """Whether it is XLA:CPU that is asked."""
    are_layouts_assigned: bool = False
    """Whether the pass stands behind layout assignment, so that layouts count."""

    def all_causes(self) -> tuple[Cause, ...]:
        """The causes of the pass, and those of every pass."""
        layouts = () if self.are_layouts_assigned else (LAYOUTS,)
        return (*self.causes, *layouts, MADE_TWICE)


_on_cpu = partial(Generated, is_on_cpu=True)
GENERATED = {
    "collective-quantizer": Generated(
        for_quantizer,
        (
            Cause(
                "XLA leaves a collective with control dependencies beside the new one; ours leaves "
                "it alone",
                has_control,
            ),
        ),
    ),
    "convert-memory-placement-to-internal-annotations": Generated(for_placements),
    "dot-merger": Generated(
        for_merger,
        (
            Cause(
                "ours, as newer XLA, also merges dots whose operands have other dimensions",
                lambda modules: count(modules.ours, Opcode.DOT) < count(modules.theirs, Opcode.DOT),
            ),
            Cause(
                "XLA merges a third dot with what it made of two, ours, as newer XLA, all at once",
                lambda modules: (
                    count(modules.ours, Opcode.DOT) == count(modules.theirs, Opcode.DOT)
                ),
            ),
        ),
        flags=(f"--xla_gpu_dot_merger_threshold_mb={MOST_BYTES >> 20}",),
        options=f"max_size_to_merge={MOST_BYTES}",
    ),
    "dot_dimension_merger": Generated(
        for_dimension_merger,
        (MOVES_CONTROL,),
    ),
    "dot_dimension_sorter": Generated(
        for_sorter,
        (
            MOVES_CONTROL,
            Cause(
                "XLA leaves three contracting dimensions unsorted that go round in a cycle",
                are_unsorted,
            ),
        ),
    ),
    "dot_normalizer": Generated(for_normalizer),
    "logistic-expander": Generated(for_logistic),
    "simplify-fp-conversions": Generated(for_conversions),
    "all_to_all_decomposer": _on_cpu(for_exchanges),
    "associative-scan-rewriter": _on_cpu(for_scans, (KEEPS_SCANS,)),
    "batch-dot-simplification": _on_cpu(for_batches_of_one),
    "batched_gather_scatter_normalizer": _on_cpu(for_batching),
    "batchnorm_expander": _on_cpu(
        for_batch_norms,
        options=",".join(f"rewrite_{kind}_op=true" for kind in ("training", "inference", "grad")),
    ),
    "bitcast_dtypes_expander": _on_cpu(
        for_bitcasts, (BITCASTS_DO_NOTHING, JOINS_BY_REDUCE, CONVERTS_TO_PRED)
    ),
    "broadcast_canonicalizer": _on_cpu(for_broadcasts),
    "convolution-group-converter": _on_cpu(
        for_batch_groups, options="convert_batch_groups_only=true"
    ),
    "convolution-group-converter@2": _on_cpu(for_feature_groups),
    "dot_decomposer": _on_cpu(for_decomposer, (MOVES_CONTROL,)),
    "dynamic-dimension-simplifier": _on_cpu(for_sizes),
    "dynamic-index-splitter": _on_cpu(for_index_vectors),
    "gather_expander": _on_cpu(for_gathers),
    "gather_simplifier": _on_cpu(for_gathers, (GATHERS_SCALAR,)),
    "operand_upcaster": _on_cpu(for_casts),
    "reduce-decomposer": _on_cpu(
        for_layouts, (READS_OTHER_LAYOUT, KEEPS_CONVERTED_LAYOUT), are_layouts_assigned=True
    ),
    "reduce-window-rewriter": _on_cpu(for_windows, (REPEATS_INIT,)),
    "result_caster": _on_cpu(for_casts),
    "scatter_expander": _on_cpu(for_scatters),
    "scatter_simplifier": _on_cpu(for_scatters),
    "select_and_scatter_expander": _on_cpu(for_pooling),
    "sharding-remover": _on_cpu(for_annotations),
    "topk-decomposer": _on_cpu(for_topk, (PACKS_TOPK,)),
    "transpose-folding": _on_cpu(for_transposes, options="transposable_conv_operands=false"),
    "tree_reduction_rewriter": _on_cpu(for_tree, (REPEATS_INIT, LEFT_TO_LIBRARY)),
    "while-loop-constant-sinking": _on_cpu(for_loops),
    "while-loop-invariant-code-motion": _on_cpu(for_loops, (HOISTS_LEFTOVERS, STOPS_AT_TUPLE)),
}
"""By the pass, as XLA names it; with @2 behind the name, as it is at its second place there."""
