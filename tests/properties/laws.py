"""What each pass must do to any module, whatever its options."""

from __future__ import annotations

import re
from typing import Any

from tests.properties.consistency import assert_consistent

from hloopt.diagnostics import PassRefused
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module

KINDS = (
    *("all_reduce", "all_gather", "collective_broadcast", "collective_permute"),
    *("all_to_all", "reduce_scatter", "ragged_all_to_all"),
)
NEED_A_SCHEDULE = (
    "convert-async-collectives-to-sync",
    "gpu-convert-async-collectives-to-sync",
    "instruction-hoister",
    "latency-hiding-scheduler",
    "memory-space-assignment",
    "rematerialization",
    "scheduler-memory-fencing",
    "scheduling-instruction-annotator",
)
"""Passes that work on the order of instructions."""
NEED_A_FLAT_CALL_GRAPH = (
    "memory-space-assignment",
    *("copy-insertion", "remove-unnecessary-copies", "add-special-case-copies"),
)
"""Passes that refuse computations of control flow with several call sites."""
MIX_PRECISIONS = ("bfloat16-conversion-folding", "bfloat16-propagation")
"""Passes whose results are valid where operands may differ in precision."""
ALWAYS_CHANGE = ("copy-insertion",)
"""Passes that say that they changed the module whatever they did, as XLA's do."""
MOVED = ["all-reduce", "all-gather", "collective-permute", "negate", "multiply", "dynamic-slice"]
ROUNDING = {
    "operand": True,
    "output": True,
    "mixed": True,
    "operand_effectively_low": {"opcodes": ["multiply", "dot", "negate", "compare"]},
}
"""A backend that rounds to bf16 what it reads in a few operations."""
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "add-special-case-copies": [{}],
    "algsimp": [{}, {"preserve": "bits"}, {"enable_fast_math": True}],
    "async-collective-annotator": [{}, {"disable_async_collectives": ["all-reduce"]}],
    "all-gather-bcast-reorder": [{}],
    "all-gather-combiner": [{}, {"combine_by_dim": True, "combine_different_dtypes": False}],
    "all-gather-cse": [{}],
    "all-reduce-combiner": [{}, {"combine_while_loops": False}],
    "all-reduce-contiguous": [{}],
    "all-reduce-folder": [{}],
    "all-reduce-reassociate": [{}, {"reassociate_converted_ar": True}],
    "all-reduce-simplifier": [{}],
    "all-reduce-splitter": [{}],
    "all-reduce-to-reduce-scatter": [{}, {"min_bytes": 8}],
    "async-collective-creator": [
        {f"convert_{kind}": True for kind in KINDS},
        {**{f"convert_{kind}": True for kind in KINDS}, "use_generic_async_start_done": True},
    ],
    "async-stream-attribute-wrapper": [{}],
    "bfloat16-conversion-folding": [
        {"target": "h100_sxm"},
        {"float_support": {"operand": True, "output": True, "mixed": True}},
        {"float_support": {"operand": True, "output": True, "mixed": False}},
    ],
    "bfloat16-propagation": [
        {"target": "h100_sxm"},
        {"float_support": ROUNDING},
        {"float_support": {**ROUNDING, "mixed": {"opcodes": ["multiply", "tuple", "while"]}}},
    ],
    "block-scaling-rewriter": [
        {},
        {"cudnn_version": [9, 10]},
        {"cudnn_version": [9, 13]},
    ],
    "call-inliner": [{}, {"single_call_site": True, "update_domain": True}],
    "call-parameter-cleanup": [{}],
    "call-splitter": [
        {"boundary": ["add", "negate", "multiply", "dot", "custom-call"]},
        {"boundary": ["multiply", "copy", "constant"], "direction": "up"},
    ],
    "check-no-data-dependency-in-scheduling-annotations": [{}],
    "collective-pipeliner": [
        {
            "pipelining_direction": direction,
            "should_process": MOVED,
            "unique_channel_id": is_as_new,
            "keep_names": not is_as_new,
        }
        for direction in ("forward", "backward", "forward-sink")
        for is_as_new in (False, True)
    ],
    "collective-uncombiner": [{}],
    "collectives-schedule-linearizer": [{}],
    "combine-collectives": [{"groups": [["a", "b"], ["ar.0", "ar.1"], ["ag.1", "ag.2"]]}],
    "collective-permute-decomposer": [{}, {"pipeline_parallelism_opt_level": "enable"}],
    "composite-rewriter": [{}],
    "computation-deduplicator": [{}, {"mark_fusion_duplications": True}],
    "conditional-canonicalizer": [{}],
    "conditional-code-motion": [
        {},
        {"is_layout_sensitive": False, "memory_increase_allowance": 0},
        {"search_config": "0,1,2,2;1,0,1,1"},
    ],
    "conditional-to-select": [{}],
    "constant-folding": [{}, {"max_result_elements": 3}],
    "convert-async-collectives-to-sync": [{"nop_opcodes": ["bitcast", "get-tuple-element"]}],
    "cse": [{}, {"is_layout_sensitive": True, "ignore_control_dependencies": True}],
    "cse-barrier-expander": [{}],
    "dce": [
        {},
        {"remove_cross_partition_collective_ops": True},
        {"use_call_analysis": True, "remove_dead_parameters_from_entry_computation": True},
    ],
    "double-buffer-loop-unrolling": [
        {"unroll_strategy": strategy} for strategy in ("double-buffer", "full-unroll", "auto")
    ],
    "explicit-collectives-group-async-wrapper": [{}],
    "explicit-stream-annotation-async-wrapper": [{}],
    "fingerprint-before-lhs": [{}],
    "flatten-call-graph": [{}, {"skip_cloning": "call-only"}],
    "float-normalization": [
        {},
        {"allow_excess_precision": False},
        {"float_support": {"low": "f32", "high": "f64"}},
        {"float_support": {"low": "f32", "high": "f64", "operand": True, "mixed": False}},
        {"float_support": {"operand": True, "output": True, "mixed": False}},
    ],
    "gpu-all-gather-combiner": [{}],
    "gpu-all-reduce-combiner": [{}],
    "gpu-convert-async-collectives-to-sync": [{}],
    "gpu-reduce-scatter-combiner": [{}],
    "hlo-descheduler": [{}],
    "hlo-memory-scheduler": [
        *({"algorithm": a} for a in ("default", "list", "dfs", "post-order", "bfs")),
        {"preset": "xla-gpu"},
    ],
    "hlo-trivial-scheduler": [{}],
    "host-compute-asyncifier": [{}],
    "host-memory-transfer-asyncifier": [{}],
    "latency-hiding-scheduler": [
        *({"preset": preset} for preset in ("xla-generic", "xla-gpu")),
        {"top_down_scheduling": True, "schedule_send_recvs": True},
        {"preset": "xla-gpu", "memory_limit": 4096, "rerun": 1},
        {"memory_limit": 64, "hard_memory_limit": True},
    ],
    "latency-hiding-scheduler-preparation": [{}],
    "legalize-scheduling-annotations": [{"deannotate_unsupported_groups": True}],
    "propagate-call-metadata": [{}],
    "reduce-scatter-combiner": [{}],
    "reduce-scatter-creator": [{}],
    "reduce-scatter-reassociate": [{}],
    "reorder-convert-reduce-add": [{"enable_reduce_scatter": True}],
    "reorder-reduce-transpose": [{}],
    "reshape-mover": [{}, {"reshape_of_1d_broadcast_is_cheap": True}],
    "scaled-dot-rewriter": [{}, {"filter": "not-in-cudnn"}],
    "scheduler-memory-fencing": [{"threshold_bytes": 1, "slack_windows": 0}],
    "scheduling-instruction-annotator": [{}],
    "simplify-conditional": [{}],
    "simplify-fp-conversions": [{}],
    "simplify-sorts": [{}],
    "simplify-while-loops": [{}, {"simplify_compare_instrs": True}],
    "copy-insertion": [{}, {"use_region_based_live_range_analysis": -1, "alias_info": "gpu"}],
    "rematerialization": [
        {"memory_limit_bytes": 0, "recompute": True, "block_size_limit": 4},
        {"memory_limit_bytes": 64, "recompute": True, "algorithm": "peak-priority"},
        {
            "memory_limit_bytes": 0,
            "recompute": True,
            "compress": True,
            "size_function": "pad-minor-to-64",
            "compact_shape_function": "swap-two-minor-dimensions",
        },
        {
            "memory_limit_bytes": 0,
            "host_offload": True,
            "host_memory_space": 5,
            **{f"bandwidth_{way}_host_bytes_per_second": 1e9 for way in ("to", "from")},
            **{f"{what}_per_second": 1 for what in ("flops", "transcendentals", "bytes")},
        },
    ],
    "remove-unnecessary-copies": [{}],
    "instruction-hoister": [{}],
    "memory-space-assignment": [
        {
            "max_size_in_bytes": 256,
            "alignment_in_bytes": 8,
            "prefetch_interval_picker": {"min_overlap": 1, "max_overlap": 20},
        },
        {
            "max_size_in_bytes": "64KiB",
            "prefetch_interval_picker": {"kind": "cost-analysis"},
            "cost_model": {
                "flops_per_second": 1e9,
                "default_mem_bandwidth_bytes_per_second": 1e6,
                "alternate_mem_read_bandwidth_bytes_per_second": 1e7,
                "alternate_mem_write_bandwidth_bytes_per_second": 1e7,
            },
            "sort": {"kind": "memory-boundedness"},
            "enable_sync_copy_replacement": True,
            "enable_sync_slice_replacement": True,
            "async_slices_implemented": True,
            "max_repacks": 2,
            "repacker": "best-fit",
        },
        {"max_size_in_bytes": 512, "always_spill_to_default_memory": True},
    ],
    "synchronize-collectives": [{}],
    "tuple-simplifier": [{}, {"exclude_entry_computation": True}],
    "unflatten-call-graph": [{}],
    "while-loop-all-reduce-code-motion": [
        {},
        {"enable_reduce_scatter": True, "run_setup_passes": True},
    ],
    "while-loop-trip-count-annotator": [{}],
    "zero-sized-hlo-elimination": [{}],
}
LEAVES_MORE_TO_DO = [
    # What dead code read in full is not read any more, and what is low by then meets others.
    *(("bfloat16-propagation", options) for options in OPTIONS["bfloat16-propagation"][1:]),
    # Each run moves things a trip further.
    *(("collective-pipeliner", options) for options in OPTIONS["collective-pipeliner"]),
    # Callers are visited before the callees whose effects and parameters go.
    ("dce", {"remove_cross_partition_collective_ops": True}),
    ("dce", {"use_call_analysis": True, "remove_dead_parameters_from_entry_computation": True}),
    # The first thing that applies to a loop is done, as in XLA.
    ("simplify-while-loops", {}),
    ("simplify-while-loops", {"simplify_compare_instrs": True}),
    # What is in alternate memory already has to stay there; the rest is placed around it.
    *(("memory-space-assignment", options) for options in OPTIONS["memory-space-assignment"]),
    # Operations that moved may let others move.
    *(("conditional-code-motion", options) for options in OPTIONS["conditional-code-motion"]),
    # What is ready first is taken in the order of the list, which the schedule then is.
    *(("hlo-memory-scheduler", {"algorithm": a}) for a in ("default", "list", "bfs")),
    ("hlo-memory-scheduler", {"preset": "xla-gpu"}),
    # A branch that stops reading an input may have been the last to read another's output.
    ("simplify-conditional", {}),
    # The order it finds is the original order of the next run.
    *(("latency-hiding-scheduler", options) for options in OPTIONS["latency-hiding-scheduler"]),
    # Two calls of one computation each put their name in front of the other's.
    ("propagate-call-metadata", {}),
    # Each collective is looked at once, also where it was an operand of one that moved.
    *(
        ("while-loop-all-reduce-code-motion", options)
        for options in OPTIONS["while-loop-all-reduce-code-motion"]
    ),
    # Loops have trips left to be unrolled.
    ("double-buffer-loop-unrolling", {"unroll_strategy": "double-buffer"}),
    ("double-buffer-loop-unrolling", {"unroll_strategy": "auto"}),
    # One permute of a loop is split at a time.
    ("collective-permute-decomposer", {"pipeline_parallelism_opt_level": "enable"}),
    # A fusion that takes over the group of what it fuses counts as a member from the next run on.
    ("legalize-scheduling-annotations", {"deannotate_unsupported_groups": True}),
    # Copies are made anew.
    ("copy-insertion", {}),
    ("copy-insertion", {"use_region_based_live_range_analysis": -1, "alias_info": "gpu"}),
    ("add-special-case-copies", {}),
    # New instructions may be recomputed in their turn.
    *(("rematerialization", options) for options in OPTIONS["rematerialization"]),
    # What it removed, dce has to take away.
    ("remove-unnecessary-copies", {}),
    # A step at a time, so that others can simplify in between.
    ("reshape-mover", {}),
    ("reshape-mover", {"reshape_of_1d_broadcast_is_cheap": True}),
]
"""What need not be done after one run."""
MAY_REFUSE = (
    "block-scaling-rewriter",
    *("latency-hiding-scheduler", "legalize-scheduling-annotations"),
    "check-no-data-dependency-in-scheduling-annotations",
    "memory-space-assignment",
)
"""Passes that end with an error where what a module asks for does not fit or cannot be met."""
NEEDS_EXPANDED_SCANS = ("bfloat16-propagation",)
"""Passes that refuse scans that are not associative."""
CHANGES_FEW = [
    # XLA's unit tests have hardly any equal fusions, conditionals that are applied to elements, or
    # gathered broadcasts.
    ("computation-deduplicator", {"mark_fusion_duplications": True}),
    ("conditional-to-select", {}),
    # Hardly any has only conversions that a backend without mixed precision can do without.
    *(
        ("bfloat16-conversion-folding", {"target": "h100_sxm"}),
        (
            "bfloat16-conversion-folding",
            {"float_support": {"operand": True, "output": True, "mixed": False}},
        ),
    ),
    # Hardly any has work on other streams, on the host, or in groups.
    ("async-stream-attribute-wrapper", {}),
    ("explicit-collectives-group-async-wrapper", {}),
    ("explicit-stream-annotation-async-wrapper", {}),
    ("host-compute-asyncifier", {}),
    # And few that fit these.
    ("all-reduce-splitter", {}),
    ("collective-uncombiner", {}),
    *(("combine-collectives", options) for options in OPTIONS["combine-collectives"]),
    ("reorder-convert-reduce-add", {"enable_reduce_scatter": True}),
    ("reorder-reduce-transpose", {}),
    ("all-gather-bcast-reorder", {}),
]
"""What does something to few modules."""
CHANGE_NOTHING = ("check-no-data-dependency-in-scheduling-annotations",)
"""Passes that only refuse modules."""
NOT_IN_THE_CORPUS = ("composite-rewriter",)
"""Passes for what no module of XLA's unit tests has as it stands."""
CASES = [(name, options) for name, choices in OPTIONS.items() for options in choices]
FULL = PrintOptions.formatted()._replace(keep_order=False)
"""Written anew as XLA orders it, nothing left out."""


def run(name: str, options: dict[str, Any], module: Module) -> bool:
    return create_pass(name, options).run(module, PassContext(name))


def prepare(name: str, module: Module) -> None:
    """Give `module` what the pass asks for."""
    if name in NEED_A_SCHEDULE and not module.is_scheduled:
        run("hlo-trivial-scheduler", {}, module)
    if name in NEED_A_FLAT_CALL_GRAPH:
        run("flatten-call-graph", {}, module)


def blocks(text: str) -> list[str]:
    """The parts of a printed module, without the numbers in names that readers make up.

    Lines are sorted unless the module is scheduled: else their order says nothing.
    """
    parts = [block.strip("\n") for block in _MADE_UP.sub(r"\1", text).split("\n\n")]
    if "is_scheduled=true" not in parts[0]:
        parts = ["\n".join(sorted(block.split("\n"))) for block in parts]
    return sorted(parts)


_MADE_UP = re.compile(r"\b(async_wrapped|async_param|call)\.\d+")


class Subject:
    """A module for passes to run on. Those that leave it alone leave it to the next."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._untouched: dict[tuple[bool, bool], tuple[Module, str]] = {}

    def take(self, name: str) -> tuple[Module, str]:
        """The module as the pass wants it, and how it prints."""
        wanted = _wanted(name)
        if wanted not in self._untouched:
            module = parse_module(self._text)
            prepare(name, module)
            self._untouched[wanted] = module, print_module(module, FULL)
        return self._untouched.pop(wanted)

    def give_back(self, name: str, module: Module, printed: str) -> None:
        """For a pass that did nothing."""
        self._untouched[_wanted(name)] = module, printed


def _wanted(name: str) -> tuple[bool, bool]:
    """Whether a pass requires a schedule, and whether it requires a flat call graph."""
    return name in NEED_A_SCHEDULE, name in NEED_A_FLAT_CALL_GRAPH


def assert_laws(name: str, options: dict[str, Any], subject: Subject) -> bool:
    """Run a pass on a valid module and again on the result; whether it changed anything."""
    module, before = subject.take(name)
    version = module.version
    try:
        changed = run(name, options, module)
    except PassRefused as refusal:
        is_about_scan = name in NEEDS_EXPANDED_SCANS and "Non-associative scan" in str(refusal)
        if not (options.get("hard_memory_limit") or is_about_scan):
            raise
        return False  # the driver would take the module back; `test_schedules` looks at limits
    after = print_module(module, FULL)
    if name in ALWAYS_CHANGE:
        assert changed
        changed = after != before
    else:
        assert changed == (after != before)
        # Under a hard limit other orders were tried on the module itself.
        assert changed == (module.version != version) or options.get("hard_memory_limit")
    assert_consistent(module)
    if not changed:
        subject.give_back(name, module, after)
        return False
    assert verify_module(module, ANY_TARGET) == []
    again = print_module(parse_module(print_module(module)), FULL)
    assert blocks(again) == blocks(after)
    if (name, options) not in LEAVES_MORE_TO_DO:
        assert not run(name, options, module), "a second run finds something"
        assert print_module(module, FULL) == after
    return True
