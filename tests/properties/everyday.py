"""Options with which laws.py tries the passes on slices, shardings, placement, and tools."""

from __future__ import annotations

from typing import Any

EVERYDAY: dict[str, list[dict[str, Any]]] = {
    "all-gather-dynamic-slice-simplifier": [
        {},
        {
            "allow_multiple_split_dims": True,
            "allow_intervening_bitcast": True,
            "allow_multiple_users": True,
        },
    ],
    "all-to-all-decomposer": [{}, {"decompose_to_tuple": False, "min_array_rank": 4}],
    "assume-gather-indices-in-bound-rewrite-to-copy": [{}],
    "collective-quantizer": [{}],
    "convert-memory-placement-to-internal-annotations": [{}],
    "convolution-group-converter": [
        {},
        {"filter_expansion": False},
        {"convert_batch_groups_only": True},
    ],
    "defuser": [{}],
    "despecializer": [
        {},
        {
            "deconstruct_reduce_window_to_reduce_broadcast": True,
            "assume_gather_indices_in_bound_rewrite_to_copy": True,
        },
    ],
    "dynamic-dimension-simplifier": [{}],
    "dynamic-index-splitter": [{}],
    "optimize-input-output-buffer-alias": [{}, {"registered_buffer_donor_only": True}],
    "reduce-window-to-reduce-and-broadcast": [{}],
    "sharding-remover": [{}],
    "slice-sinker": [{}],
}
"""As OPTIONS of laws.py."""
EVERYDAY_MORE_TO_DO: list[tuple[str, dict[str, Any]]] = []
"""As LEAVES_MORE_TO_DO."""
EVERYDAY_CHANGES_FEW: list[tuple[str, dict[str, Any]]] = []
"""As CHANGES_FEW."""
