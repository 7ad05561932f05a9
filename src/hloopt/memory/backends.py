"""The differences between XLA's backends in ordering instructions and assigning buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hloopt.ir import Instruction, Module
from hloopt.ir.custom_targets import custom_call_target
from hloopt.memory.buffers import ColorRule
from hloopt.memory.gpu.arrangement import arrange_for_gpu
from hloopt.memory.gpu.colors import TEMPORARY_COLOR, GpuMemoryFlags
from hloopt.memory.gpu.rules import gpu_may_overwrite
from hloopt.memory.overwrite import BackendRule


@dataclass(frozen=True, slots=True)
class Backend:
    """The rules by which a backend orders instructions and places buffers."""

    name: str
    alignment: int
    """Bytes: where temporaries may begin."""
    may_overwrite: BackendRule | None = None
    """Its own rule for results that overwrite operands."""
    colors: ColorRule | None = None
    """The memory that it wants values in, where their layout does not tell."""
    temporary_color: int = 0
    """The color of the temporaries of color 0 where several are put together."""
    assigned_before_printing: bool = False
    """Whether a scheduled text counts as one that the compiler printed after it placed the buffers,
    not as one that it reads: what it printed does not show the order of its lists."""
    arrange: Callable[[Sequence[Instruction]], list[Instruction]] = list
    """The order it makes of that which a memory scheduler found."""


CPU = Backend("cpu", alignment=64)


def gpu_backend(flags: GpuMemoryFlags) -> Backend:
    """XLA:GPU as it is with some flags."""
    separate = flags.xla_gpu_temp_buffer_use_separate_color
    return Backend(
        "gpu",
        alignment=256,
        may_overwrite=gpu_may_overwrite,
        colors=flags.colors,
        temporary_color=TEMPORARY_COLOR if separate else 0,
        assigned_before_printing=True,
        arrange=arrange_for_gpu,
    )


GPU = gpu_backend(GpuMemoryFlags())
BACKENDS = {backend.name: backend for backend in (CPU, GPU)}
"""The backends by name."""


def common_backend(modules: Iterable[Module]) -> Backend:
    """The backend of versions of one module: XLA:GPU's if any is for it. Passes add what tells."""
    return GPU if any(backend_of(module) is GPU for module in modules) else CPU


_TELLING = ("backend_config", "custom_call_target")
_GPU_CONFIGS = ("fusion_backend_config", "operation_queue_id", "collective_backend_config")
_GPU_TARGETS = ("__cublas", "__cudnn", "__triton")


def backend_of(module: Module) -> Backend:
    """The backend a module was compiled for, by what only XLA:GPU writes; else the CPU.

    O(instructions of the entry), until something tells.
    """
    if "fingerprint_before_lhs" in module.attributes.get("frontend_attributes", ""):
        return GPU
    for instruction in module.entry.instructions:
        text = instruction.attribute_text
        if text is not None and not any(name in text for name in _TELLING):
            continue  # without splitting attributes, which takes longer
        attributes = instruction.attributes
        config = attributes.get("backend_config", "")
        if any(mark in config for mark in _GPU_CONFIGS):
            return GPU
        if custom_call_target(instruction).startswith(_GPU_TARGETS):
            return GPU
    return CPU
