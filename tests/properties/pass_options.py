"""Options to try of passes over loops, converts, reductions and memory spaces, and of expanders."""

from __future__ import annotations

from typing import Any

PASS_OPTIONS: dict[str, list[dict[str, Any]]] = {
    "associative-scan-rewriter": [{}, {"base_length": 2}],
    "batchnorm-expander": [
        {f"rewrite_{kind}_op": True for kind in ("training", "inference", "grad")},
    ],
    "bitcast-dtypes-expander": [{}],
    "convert-mover": [{}],
    "logistic-expander": [{}],
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
    "operand-upcaster": [{}],
    "reduce-decomposer": [{}],
    "reduce-window-rewriter": [{}, {"base_length": 2}],
    "result-caster": [{}],
    "stable-sort-expander": [{}],
    "topk-decomposer": [{}],
    "topk-rewriter": [{}],
    "tree-reduction-rewriter": [{}, {"reduce_window_size": 2}],
    "while-loop-constant-sinking": [{}, {"sink_broadcast_of_constants": True}],
    "while-loop-expensive-invariant-code-motion": [
        {"worth_hoisting_individually": ["add", "multiply", "negate"]},
    ],
    "while-loop-invariant-code-motion": [{}, {"hoist_constants": True, "hoist_reshapes": True}],
}
