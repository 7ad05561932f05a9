"""What differs between XLA's backends when they assign buffers."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.ir import Module
from hloopt.memory.gpu_fusions import gpu_fusion_may_overwrite
from hloopt.memory.overwrite import FusionRule


@dataclass(frozen=True, slots=True)
class Backend:
    """How a backend places buffers."""

    name: str
    alignment: int
    """Bytes: where temporaries may begin."""
    fusion_rule: FusionRule | None = None
    """Its own rule for fusions that overwrite operands."""


CPU = Backend("cpu", alignment=64)
GPU = Backend("gpu", alignment=256, fusion_rule=gpu_fusion_may_overwrite)
BACKENDS = {backend.name: backend for backend in (CPU, GPU)}
"""The backends by name."""

_GPU_CONFIGS = ("fusion_backend_config", "operation_queue_id", "collective_backend_config")
_GPU_TARGETS = ('"__cublas', '"__cudnn', '"__triton')


def backend_of(module: Module) -> Backend:
    """The backend a module was compiled for, by what only XLA:GPU writes; else the CPU.

    O(instructions of the entry), until something tells.
    """
    if "fingerprint_before_lhs" in module.attributes.get("frontend_attributes", ""):
        return GPU
    for instruction in module.entry.instructions:
        attributes = instruction.attributes
        config = attributes.get("backend_config", "")
        if any(mark in config for mark in _GPU_CONFIGS):
            return GPU
        if attributes.get("custom_call_target", "").startswith(_GPU_TARGETS):
            return GPU
    return CPU
