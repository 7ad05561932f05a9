"""Options with which laws.py tries the passes on dots, gathers, scatters and reshapes."""

from __future__ import annotations

from typing import Any

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "batch-dot-simplification": [{}],
    "batched-gather-scatter-normalizer": [{}],
    "broadcast-canonicalizer": [{}],
    "dot-decomposer": [{}],
    "dot-dimension-merger": [{}],
    "dot-dimension-sorter": [{}],
    "dot-normalizer": [{}],
    "gather-simplifier": [{}],
    "reshape-decomposer": [{}],
    "scatter-simplifier": [{}],
    "select-and-scatter-expander": [{}],
    "transpose-folding": [
        {},
        {"dot_can_fold_transpose_operand": True, "transposable_conv_operands": False},
    ],
}
"""As OPTIONS of laws.py."""
MORE_TO_DO: list[tuple[str, dict[str, Any]]] = [
    # One transpose of a chain per run.
    *(("transpose-folding", options) for options in OPTIONS["transpose-folding"]),
]
"""As LEAVES_MORE_TO_DO."""
CHANGES_FEW: list[tuple[str, dict[str, Any]]] = [
    ("broadcast-canonicalizer", {}),
    ("dot-dimension-sorter", {}),
    ("dot-normalizer", {}),
    ("select-and-scatter-expander", {}),
    ("transpose-folding", {}),
]
"""As CHANGES_FEW."""
