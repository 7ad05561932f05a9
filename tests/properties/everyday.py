"""Options with which laws.py tries the passes on slices, shardings, placement, and tools."""

from __future__ import annotations

from typing import Any

EVERYDAY: dict[str, list[dict[str, Any]]] = {
    "dynamic-dimension-simplifier": [{}],
    "dynamic-index-splitter": [{}],
    "sharding-remover": [{}],
    "slice-sinker": [{}],
}
"""As OPTIONS of laws.py."""
EVERYDAY_MORE_TO_DO: list[tuple[str, dict[str, Any]]] = []
"""As LEAVES_MORE_TO_DO."""
EVERYDAY_CHANGES_FEW: list[tuple[str, dict[str, Any]]] = []
"""As CHANGES_FEW."""
