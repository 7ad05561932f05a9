"""Options to try of passes over loops, converts and reductions, and of expanders."""

from __future__ import annotations

from typing import Any

EVERYDAY_OPTIONS: dict[str, list[dict[str, Any]]] = {
    "batchnorm-expander": [
        {},
        {f"rewrite_{kind}_op": True for kind in ("training", "inference", "grad")},
    ],
    "bitcast-dtypes-expander": [{}],
    "convert-mover": [{}],
    "logistic-expander": [{}],
    "operand-upcaster": [{}],
    "reduce-decomposer": [{}],
    "result-caster": [{}],
    "stable-sort-expander": [{}],
    "topk-decomposer": [{}],
    "tree-reduction-rewriter": [{}, {"reduce_window_size": 2}],
    "while-loop-constant-sinking": [{}, {"sink_broadcast_of_constants": True}],
    "while-loop-expensive-invariant-code-motion": [
        {},
        {"worth_hoisting_individually": ["add", "multiply", "negate"]},
    ],
    "while-loop-invariant-code-motion": [{}, {"hoist_constants": True, "hoist_reshapes": True}],
}
