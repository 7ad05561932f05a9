"""Collectives that run on NVSHMEM instead of NCCL."""

from __future__ import annotations

from hloopt.analysis.loops.annotation import backend_config
from hloopt.ir import Instruction

_NVSHMEM = "NVSHMEM"


def uses_nvshmem(instruction: Instruction) -> bool:
    """Whether XLA:GPU runs a collective on NVSHMEM, by its `collective_backend_config`."""
    if _NVSHMEM not in instruction.attributes.get("backend_config", ""):
        return False
    config = (backend_config(instruction) or {}).get("collective_backend_config")
    return isinstance(config, dict) and config.get("backend") == _NVSHMEM
