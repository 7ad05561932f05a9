"""The differences between XLA's backends in ordering instructions and assigning buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from hloopt.diagnostics import HloError, did_you_mean
from hloopt.ir import Instruction, Module
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.shapes.layout import HOST_MEMORY_SPACE, TPU_MEMORY_SPACES
from hloopt.memory.buffers import ColorRule
from hloopt.memory.gpu.arrangement import arrange_for_gpu
from hloopt.memory.gpu.colors import COLLECTIVE_COLOR, TEMPORARY_COLOR, GpuMemoryFlags
from hloopt.memory.gpu.rules import gpu_may_overwrite
from hloopt.memory.overwrite import BackendRule
from hloopt.memory.sizes import CPU_SIZES, GPU_SIZES, TPU_SIZES, SizeRule


@dataclass(frozen=True, slots=True)
class Backend:
    """The rules by which a backend orders instructions and places buffers."""

    name: str
    sizes: SizeRule
    spaces: Mapping[int, str]
    """The names of its memory spaces `S(n)`; 0 is main memory."""
    apart: frozenset[int] = frozenset()
    """Memory spaces that do not count in main memory. XLA:CPU and XLA:GPU count all in their peak,
    host memory too."""
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

    def space_name(self, space: int) -> str:
        """The name of a memory space; `S(n)` of one it does not have."""
        return self.spaces.get(space, f"S({space})")

    def space_named(self, name: str) -> int:
        """The memory space of a name, in whatever case, or of `S(n)`. Raises HloError for none."""
        known = {text.lower(): space for space, text in self.spaces.items()}
        known |= {f"s({space})": space for space in self.spaces}
        if (space := known.get(name.lower())) is not None:
            return space
        names = list(self.spaces.values())
        raise HloError(
            f"XLA:{self.name.upper()} has no memory space '{name}'",
            help=did_you_mean(name, names) or f"there are {', '.join(names)}",
        )


CPU = Backend("cpu", sizes=CPU_SIZES, spaces={0: "main", HOST_MEMORY_SPACE: "host"})


def gpu_backend(flags: GpuMemoryFlags) -> Backend:
    """XLA:GPU as it is with some flags."""
    separate = flags.xla_gpu_temp_buffer_use_separate_color
    return Backend(
        "gpu",
        sizes=GPU_SIZES,
        spaces={0: "HBM", COLLECTIVE_COLOR: "collective", HOST_MEMORY_SPACE: "host"},
        may_overwrite=gpu_may_overwrite,
        colors=flags.colors,
        temporary_color=TEMPORARY_COLOR if separate else 0,
        assigned_before_printing=True,
        arrange=arrange_for_gpu,
    )


GPU = gpu_backend(GpuMemoryFlags())
TPU = Backend(
    "tpu",
    sizes=TPU_SIZES,
    spaces={0: "HBM", **TPU_MEMORY_SPACES, HOST_MEMORY_SPACE: "host"},
    apart=frozenset((*TPU_MEMORY_SPACES, HOST_MEMORY_SPACE)),
)
"""XLA:TPU, whose rules are not published: those that XLA:CPU and XLA:GPU share."""
BACKENDS = {backend.name: backend for backend in (CPU, GPU, TPU)}
"""The backends by name."""


def common_backend(modules: Iterable[Module]) -> Backend:
    """The backend of several versions of one module: GPU or TPU if one of them shows it, which only
    a pass may have brought in."""
    found = [backend_of(module) for module in modules]
    return next((backend for backend in (GPU, TPU) if backend in found), CPU)


_TELLING = ("backend_config", "custom_call_target")
_GPU_CONFIGS = ("fusion_backend_config", "operation_queue_id", "collective_backend_config")
_GPU_TARGETS = ("__cublas", "__cudnn", "__triton")


def backend_of(module: Module) -> Backend:
    """The backend a module was compiled for: XLA:GPU by what it alone writes, XLA:TPU by tiles of
    layouts and memory spaces that are its own; else XLA:CPU.

    O(instructions), until something tells.
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
    return TPU if _has_layouts_of_tpu(module) else CPU


def _has_layouts_of_tpu(module: Module) -> bool:
    shapes = dict.fromkeys(instruction.shape for instruction in module.instructions())
    return any(
        leaf.layout.tiles or leaf.layout.memory_space in TPU_MEMORY_SPACES
        for shape in shapes
        for leaf in shape.leaves()
    )
