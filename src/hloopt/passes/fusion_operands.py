"""The names of `hloopt.passes.rewriting.fusion_operands` that other packages import from here."""

from __future__ import annotations

from hloopt.passes.rewriting.fusion_operands import (
    permute_fusion_operands as permute_fusion_operands,
)
