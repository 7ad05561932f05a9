"""Options with which laws.py tries the passes on dots, gathers, scatters and reshapes."""

from __future__ import annotations

from typing import Any

REARRANGING: dict[str, list[dict[str, Any]]] = {
    "batch-dot-simplification": [{}],
    "broadcast-canonicalizer": [{}],
    "dot-decomposer": [{}],
    "dot-dimension-merger": [{}],
    "dot-dimension-sorter": [{}],
    "dot-normalizer": [{}],
    "transpose-folding": [
        {},
        {"dot_can_fold_transpose_operand": True, "transposable_conv_operands": False},
    ],
}
"""As OPTIONS of laws.py."""
REARRANGING_MORE_TO_DO: list[tuple[str, dict[str, Any]]] = [
    # One transpose of a chain per run.
    *(("transpose-folding", options) for options in REARRANGING["transpose-folding"]),
]
"""As LEAVES_MORE_TO_DO."""
