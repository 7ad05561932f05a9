"""Passes by name. Listing names imports no pass; running one imports that one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module

from hloopt.diagnostics import HloError, PipelineError, did_you_mean
from hloopt.pass_framework.base import ModulePass, PassClass, register
from hloopt.pass_framework.options import make_options, option_infos
from hloopt.pass_framework.plugins import ENTRY_POINTS as ENTRY_POINTS
from hloopt.pass_framework.plugins import load, offered, package_of, place_in_package, place_in_pass
from hloopt.pass_framework.presets import PRESETS
from hloopt.patterns import pattern
from hloopt.preserves import Preserves

PASSES = {
    "add-special-case-copies": ".copy_insertion.passes:AddSpecialCaseCopies",
    "algsimp": ".simplification.algsimp.algebraic_simplifier:AlgebraicSimplifier",
    "all-gather-bcast-reorder": (
        ".collectives.all_gather_broadcast_reorder:AllGatherBroadcastReorder"
    ),
    "all-gather-combiner": ".collectives.collective_combiner.passes:AllGatherCombiner",
    "all-gather-cse": ".collectives.all_gather_cse:AllGatherCse",
    "all-gather-dynamic-slice-simplifier": (
        ".collectives.all_gather_dynamic_slice_simplifier:AllGatherDynamicSliceSimplifier"
    ),
    "all-reduce-combiner": ".collectives.collective_combiner.passes:AllReduceCombiner",
    "all-reduce-contiguous": ".collectives.all_reduce_contiguous:AllReduceContiguous",
    "all-reduce-folder": ".collectives.all_reduce_folder:AllReduceFolder",
    "all-reduce-reassociate": ".collectives.reduce_reassociate:AllReduceReassociate",
    "all-reduce-simplifier": ".collectives.all_reduce_simplifier:AllReduceSimplifier",
    "all-reduce-splitter": ".collectives.all_reduce_splitter:AllReduceSplitter",
    "all-reduce-to-reduce-scatter": (
        ".collectives.all_reduce_to_reduce_scatter:AllReduceToReduceScatter"
    ),
    "all-to-all-decomposer": ".collectives.all_to_all_decomposer:AllToAllDecomposer",
    "associative-scan-rewriter": (".reductions.associative_scan_rewriter:AssociativeScanRewriter"),
    "assume-gather-indices-in-bound-rewrite-to-copy": (
        ".despecialization.assume_gather_indices_in_bound:AssumeGatherIndicesInBoundRewriteToCopy"
    ),
    "async-collective-annotator": (
        ".async_ops.async_collective_annotator:AsyncCollectiveAnnotator"
    ),
    "async-collective-creator": ".async_ops.async_collective_creator:AsyncCollectiveCreator",
    "async-stream-attribute-wrapper": ".async_ops.async_wrappers:AsyncStreamAttributeWrapper",
    "batch-dot-simplification": ".dots.batch_dot_simplification:BatchDotSimplification",
    "batched-gather-scatter-normalizer": (
        ".expanders.batched_gather_scatter_normalizer:BatchedGatherScatterNormalizer"
    ),
    "batchnorm-expander": ".expanders.batchnorm_expander:BatchNormExpander",
    "bfloat16-conversion-folding": (
        ".precision.bfloat16_conversion_folding:Bfloat16ConversionFolding"
    ),
    "bfloat16-propagation": ".precision.bfloat16_propagation:Bfloat16Propagation",
    "bitcast-dtypes-expander": ".expanders.bitcast_dtypes_expander:BitcastDtypesExpander",
    "block-scaling-rewriter": (
        ".precision.block_scaling.block_scaling_rewriter:BlockScalingRewriter"
    ),
    "broadcast-canonicalizer": ".simplification.broadcast_canonicalizer:BroadcastCanonicalizer",
    "call-inliner": ".call_graph.call_inliner:CallInliner",
    "call-parameter-cleanup": ".call_graph.call_parameter_cleanup:CallParameterCleanup",
    "call-splitter": ".call_graph.call_splitter:CallSplitter",
    "check-no-data-dependency-in-scheduling-annotations": (
        ".scheduling.annotation_dependencies:CheckNoDataDependencyInSchedulingAnnotations"
    ),
    "collective-permute-decomposer": (
        ".collectives.collective_permute_decomposer:CollectivePermuteDecomposer"
    ),
    "collective-pipeliner": ".collectives.collective_pipeliner:CollectivePipeliner",
    "collective-quantizer": ".collectives.collective_quantizer:CollectiveQuantizer",
    "collective-splitter": (
        ".collectives.collective_splitter.collective_splitter:CollectiveSplitter"
    ),
    "collective-uncombiner": ".collectives.collective_uncombiner:CollectiveUncombiner",
    "collectives-schedule-linearizer": (
        ".scheduling.collectives_schedule_linearizer:CollectivesScheduleLinearizer"
    ),
    "combine-collectives": (
        ".collectives.collective_combiner.combine_collectives:CombineCollectives"
    ),
    "composite-rewriter": ".precision.block_scaling.composite_rewriter:CompositeRewriter",
    "computation-deduplicator": ".call_graph.computation_deduplicator:ComputationDeduplicator",
    "conditional-canonicalizer": ".control_flow.conditional_canonicalizer:ConditionalCanonicalizer",
    "conditional-code-motion": (
        ".control_flow.conditional_code_motion.motion:ConditionalCodeMotion"
    ),
    "conditional-to-select": ".control_flow.conditional_to_select:ConditionalToSelect",
    "constant-folding": ".simplification.constant_folding:ConstantFolding",
    "convert-async-collectives-to-sync": (
        ".async_ops.convert_async_collectives_to_sync:ConvertAsyncCollectivesToSync"
    ),
    "convert-memory-placement-to-internal-annotations": (
        ".memory_space.convert_memory_placement:ConvertMemoryPlacement"
    ),
    "convert-mover": ".precision.convert_mover:ConvertMover",
    "convolution-group-converter": (
        ".simplification.convolution_group_converter:ConvolutionGroupConverter"
    ),
    "copy-insertion": ".copy_insertion.passes:CopyInsertion",
    "cse": ".simplification.cse:CommonSubexpressionElimination",
    "cse-barrier-expander": ".simplification.cse_barrier_expander:CseBarrierExpander",
    "dce": ".simplification.dce:DeadCodeElimination",
    "defuser": ".despecialization.defuser:Defuser",
    "despecializer": ".despecialization.despecializer:Despecializer",
    "dot-decomposer": ".dots.dot_decomposer:DotDecomposer",
    "dot-dimension-merger": ".dots.dot_dimension_merger:DotDimensionMerger",
    "dot-dimension-sorter": ".dots.dot_dimension_sorter:DotDimensionSorter",
    "dot-merger": ".dots.dot_merger:DotMerger",
    "dot-normalizer": ".dots.dot_normalizer:DotNormalizer",
    "double-buffer-loop-unrolling": (
        ".control_flow.double_buffer_loop_unrolling:DoubleBufferLoopUnrolling"
    ),
    "dynamic-dimension-simplifier": (
        ".simplification.dynamic_dimension_simplifier:DynamicDimensionSimplifier"
    ),
    "dynamic-index-splitter": ".simplification.dynamic_index_splitter:DynamicIndexSplitter",
    "explicit-collectives-group-async-wrapper": (
        ".async_ops.async_wrappers:ExplicitCollectivesGroupAsyncWrapper"
    ),
    "explicit-stream-annotation-async-wrapper": (
        ".async_ops.async_wrappers:ExplicitStreamAnnotationAsyncWrapper"
    ),
    "fingerprint-before-lhs": ".scheduling.fingerprint_before_lhs:FingerprintBeforeLhs",
    "flatten-call-graph": ".call_graph.flatten_call_graph:FlattenCallGraph",
    "float-normalization": ".precision.float_normalization:FloatNormalization",
    "gather-expander": ".expanders.gather_expander:GatherExpander",
    "gather-simplifier": ".expanders.gather_simplifier:GatherSimplifier",
    "gpu-all-gather-combiner": ".collectives.collective_combiner.passes:GpuAllGatherCombiner",
    "gpu-all-reduce-combiner": ".collectives.collective_combiner.passes:GpuAllReduceCombiner",
    "gpu-convert-async-collectives-to-sync": (
        ".async_ops.convert_async_collectives_to_sync:GpuConvertAsyncCollectivesToSync"
    ),
    "gpu-reduce-scatter-combiner": (
        ".collectives.collective_combiner.passes:GpuReduceScatterCombiner"
    ),
    "hlo-descheduler": ".scheduling.memory_scheduler:Descheduler",
    "hlo-memory-scheduler": ".scheduling.memory_scheduler:MemoryScheduler",
    "hlo-trivial-scheduler": ".scheduling.memory_scheduler:TrivialScheduler",
    "host-compute-asyncifier": ".async_ops.async_wrappers:HostComputeAsyncifier",
    "host-memory-transfer-asyncifier": (
        ".async_ops.host_memory_transfer_asyncifier:HostMemoryTransferAsyncifier"
    ),
    "host-offload-legalize": (
        ".memory_space.legalization.host_offload_legalize:HostOffloadLegalize"
    ),
    "instruction-hoister": ".memory_space.instruction_hoister:InstructionHoister",
    "latency-hiding-scheduler": ".scheduling.latency_hiding_scheduler:LatencyHidingScheduler",
    "latency-hiding-scheduler-preparation": (
        ".scheduling.p2p_schedule_preparation:P2PSchedulePreparation"
    ),
    "legalize-scheduling-annotations": (
        ".scheduling.legalize_scheduling_annotations:LegalizeSchedulingAnnotations"
    ),
    "logistic-expander": ".expanders.logistic_expander:LogisticExpander",
    "memory-space-assignment": (".memory_space.memory_space_assignment:MemorySpaceAssignment"),
    "operand-upcaster": ".precision.operand_upcaster:OperandUpcaster",
    "optimize-input-output-buffer-alias": (
        ".memory_space.optimize_input_output_buffer_alias:OptimizeInputOutputBufferAlias"
    ),
    "overlap-search": ".overlap.overlap_search:OverlapSearchPass",
    "memory-search": ".overlap.memory_search:MemorySearchPass",
    "propagate-call-metadata": ".call_graph.propagate_call_metadata:PropagateCallMetadata",
    "reduce-decomposer": ".reductions.reduce_decomposer:ReduceDecomposer",
    "reduce-scatter-combiner": ".collectives.collective_combiner.passes:ReduceScatterCombiner",
    "reduce-scatter-creator": ".collectives.reduce_scatter_creator:ReduceScatterCreator",
    "reduce-scatter-reassociate": ".collectives.reduce_reassociate:ReduceScatterReassociate",
    "reduce-window-rewriter": ".reductions.reduce_window_rewriter:ReduceWindowRewriter",
    "reduce-window-to-reduce-and-broadcast": (
        ".despecialization.reduce_window_to_reduce_and_broadcast:ReduceWindowToReduceAndBroadcast"
    ),
    "rematerialization": ".rematerialization.rematerialization:Rematerialization",
    "remove-unnecessary-copies": ".copy_insertion.passes:RemoveUnnecessaryCopies",
    "reorder-convert-reduce-add": (
        ".simplification.reorder_convert_reduce_add:ReorderConvertReduceAdd"
    ),
    "reorder-reduce-transpose": ".simplification.reorder_reduce_transpose:ReorderReduceTranspose",
    "reshape-decomposer": ".expanders.reshape_decomposer:ReshapeDecomposer",
    "reshape-mover": ".simplification.reshape_mover:ReshapeMover",
    "result-caster": ".precision.result_caster:ResultCaster",
    "scaled-dot-rewriter": ".precision.block_scaling.scaled_dot_rewriter:ScaledDotRewriter",
    "scatter-expander": ".expanders.scatter_expander:ScatterExpander",
    "scatter-simplifier": ".expanders.scatter_simplifier:ScatterSimplifier",
    "scheduler-memory-fencing": ".scheduling.scheduler_memory_fencing:SchedulerMemoryFencing",
    "scheduling-instruction-annotator": (
        ".scheduling.scheduling_instruction_annotator:SchedulingInstructionAnnotator"
    ),
    "select-and-scatter-expander": (
        ".expanders.select_and_scatter_expander:SelectAndScatterExpander"
    ),
    "sharding-remover": ".simplification.sharding_remover:ShardingRemover",
    "simplify-conditional": ".control_flow.conditional_simplifier.simplifier:ConditionalSimplifier",
    "simplify-fp-conversions": ".precision.simplify_fp_conversions:SimplifyFpConversions",
    "simplify-sorts": ".simplification.sort_simplifier:SortSimplifier",
    "simplify-while-loops": ".control_flow.while_loop_simplifier.simplifier:WhileLoopSimplifier",
    "slice-sinker": ".simplification.slice_sinker:SliceSinker",
    "stable-sort-expander": ".expanders.stable_sort_expander:StableSortExpander",
    "synchronize-collectives": ".async_ops.synchronize_collectives:SynchronizeCollectives",
    "topk-decomposer": ".expanders.topk_decomposer:TopkDecomposer",
    "topk-rewriter": ".expanders.topk_rewriter:TopkRewriter",
    "transpose-folding": ".dots.transpose_folding:TransposeFolding",
    "tree-reduction-rewriter": ".reductions.tree_reduction_rewriter:TreeReductionRewriter",
    "tuple-simplifier": ".simplification.tuple_simplifier:TupleSimplifier",
    "unflatten-call-graph": ".call_graph.unflatten_call_graph:UnflattenCallGraph",
    "while-loop-all-reduce-code-motion": (
        ".collectives.while_loop_all_reduce_code_motion.motion:WhileLoopAllReduceCodeMotion"
    ),
    "while-loop-constant-sinking": (
        ".control_flow.loop_invariants.while_loop_constant_sinking:WhileLoopConstantSinking"
    ),
    "while-loop-expensive-invariant-code-motion": (
        ".control_flow.loop_invariants.while_loop_expensive_invariant_code_motion:"
        "WhileLoopExpensiveInvariantCodeMotion"
    ),
    "while-loop-invariant-code-motion": (
        ".control_flow.loop_invariants.while_loop_invariant_code_motion:"
        "WhileLoopInvariantCodeMotion"
    ),
    "while-loop-residual-offloader": (
        ".memory_space.residuals.offloader:WhileLoopResidualOffloader"
    ),
    "while-loop-transpose-sinking": (
        ".control_flow.transpose_sinking.while_loop_transpose_sinking:WhileLoopTransposeSinking"
    ),
    "while-loop-trip-count-annotator": (
        ".control_flow.while_loop_trip_count_annotator:WhileLoopTripCountAnnotator"
    ),
    "windowed-einsum-handler": (
        ".collectives.windowed_einsum.windowed_einsum_handler:WindowedEinsumHandler"
    ),
    "zero-sized-hlo-elimination": (
        ".simplification.zero_sized_hlo_elimination:ZeroSizedHloElimination"
    ),
}
"""Our passes: name → module, relative to `hloopt.passes`, and class."""

NEED_OPTIONS = frozenset(("memory-search", "overlap-search", "rematerialization"))
"""Passes that do not run without an option: a target, a limit."""

COMPILER_PASSES = {
    "xla": "hloopt.compilers.steps:XlaPasses",
    "xla-stage": "hloopt.compilers.steps:XlaStage",
}
"""Passes that are runs of a compiler of XLA, as PASSES. They need one that is installed, start a
process, and take options that nobody can guess: what tries all passes leaves them out."""

ALIASES = {
    "AssumeGatherIndicesInBoundRewriteToCopy": "assume-gather-indices-in-bound-rewrite-to-copy",
    "ReduceWindowToReduceAndBroadcast": "reduce-window-to-reduce-and-broadcast",
    "algebraic-simplifier": "algsimp",
    "all-gather-broadcast-reorder": "all-gather-bcast-reorder",
    "bfloat16-fold": "bfloat16-conversion-folding",
    "conditional-simplifier": "simplify-conditional",
    "hlo-computation-deduplicator": "computation-deduplicator",
    "loop-double-buffer-transformer": "double-buffer-loop-unrolling",
    "optimization-barrier-expander": "cse-barrier-expander",
    "p2p-schedule-preparation": "latency-hiding-scheduler-preparation",
    "sort-simplifier": "simplify-sorts",
    "while-loop-simplifier": "simplify-while-loops",
}
"""Other names that people know passes by, those of XLA's source files among them."""

_REGISTERED: dict[str, type[ModulePass]] = {}
"""The passes that code of this process registered, by name."""
_NAME = pattern(r"[A-Za-z][\w.\-]*")
_WORDS = ("fixpoint", "pipeline")
"""Words of the text of passes, which no pass can have as its name."""


def register_pass(
    name: str, *, preserves: Preserves = "rounding"
) -> Callable[[PassClass], PassClass]:
    """Give a pass a name by which this process finds it: in a text of passes, in pipelines.

    For scripts and notebooks: a name may be registered again, and the newest pass has it, before
    one that an installed package offers under it. `_` and `-` are the same. `preserves` is what
    validation holds the pass to. Raises PipelineError for a name that hloopt uses itself or that a
    text of passes cannot have, and for what is not a pass.
    """
    key = name.replace("_", "-")

    def decorate(pass_class: PassClass) -> PassClass:
        from hloopt.pass_framework.shipped import pipeline_names

        if not _NAME.fullmatch(key):
            raise PipelineError(
                f"'{name}' cannot be the name of a pass",
                help="it begins with a letter, and has letters, digits, '-' and '.'",
            )
        if any(key in names for names in (PASSES, COMPILER_PASSES, ALIASES, PRESETS)):
            raise PipelineError(f"'{name}' is a pass of hloopt: choose another name")
        if key in _WORDS or key in pipeline_names():
            raise PipelineError(f"'{name}' is a word or a pipeline of hloopt: choose another name")
        found = _checked(name, getattr(pass_class, "__qualname__", repr(pass_class)), pass_class)
        option_infos(found)
        register(key, preserves=preserves)(pass_class)
        _REGISTERED[key] = pass_class
        return pass_class

    return decorate


def pass_names() -> list[str]:
    """The names of all passes, sorted: ours, those registered, those that packages offer."""
    return sorted({*PASSES, *COMPILER_PASSES, *_REGISTERED, *offered()})


def other_names(pass_name: str) -> list[str]:
    """The names in ALIASES and PRESETS that a pass has."""
    presets = [name for name, preset in PRESETS.items() if preset.pass_name == pass_name]
    return [name for name, primary in ALIASES.items() if primary == pass_name] + presets


def find_pass(name: str) -> type[ModulePass]:
    """The pass called `name`; `_` and `-` are the same. Raises PipelineError."""
    key = name.replace("_", "-")
    preset = PRESETS.get(key)
    key = preset.pass_name if preset else ALIASES.get(key, key)
    home = PASSES.get(key) or COMPILER_PASSES.get(key)
    if home is not None:
        module, _, attribute = home.partition(":")
        return _checked(name, home, getattr(import_module(module, "hloopt.passes"), attribute))
    own = _REGISTERED.get(key)
    if own is not None:
        return own
    entry = offered().get(key)
    if entry is None:
        raise PipelineError(f"unknown pass '{name}'", help=_hint(key), code="HLO601")
    try:
        found = _checked(name, entry.value, load(entry))
        option_infos(found)
    except (PipelineError, KeyboardInterrupt):
        raise
    except BaseException as error:  # the border of another package, which may exit
        raise PipelineError(
            f"pass '{name}' cannot be loaded from {entry.value}: {type(error).__name__}: {error}",
            help=f"mend or uninstall {package_of(entry)}",
            code="HLO602",
        ).noted(place_in_package(error, entry)) from error
    found.name = key
    return found


def _checked(name: str, home: str, found: object) -> type[ModulePass]:
    if not (isinstance(found, type) and issubclass(found, ModulePass)):
        raise PipelineError(f"pass '{name}': {home} is not a subclass of ModulePass", code="HLO602")
    if not isinstance(found.__doc__, str | None):
        raise PipelineError(f"pass '{name}': the docstring of {home} is no text", code="HLO602")
    return found


def _hint(key: str) -> str:
    """A hint for the name of a pass that does not exist."""
    from hloopt.pass_framework.shipped import pipeline_names

    if key in pipeline_names():
        text, yaml = f"`pipeline({key})` in --passes", f"`- pipeline: {key}` in YAML"
        return f"it is a pipeline: -p {key}, {text}, {yaml}"
    near = did_you_mean(key, [*pass_names(), *ALIASES, *PRESETS, *pipeline_names()])
    return near or "`hloopt passes` lists all passes"


def create_pass(name: str, options: Mapping[str, object] | None = None) -> ModulePass:
    """A pass ready to run. Raises PipelineError for an unknown pass or option."""
    pass_class = find_pass(name)
    preset = PRESETS.get(name.replace("_", "-"))
    try:
        if preset is None:
            return pass_class(make_options(pass_class, options or {}))
        made = pass_class(make_options(pass_class, {**preset.options, **(options or {})}))
        made.name = name.replace("_", "-")  # by which the options are known, too
        return made
    except (HloError, KeyboardInterrupt):
        raise
    except BaseException as error:  # packages of users may raise anything
        place = place_in_pass(error, pass_class)
        if place is None:
            raise
        raise PipelineError(
            f"pass '{name}' does not take its options: {type(error).__name__}: {error}",
            code="HLO603",
        ).noted(place) from error
