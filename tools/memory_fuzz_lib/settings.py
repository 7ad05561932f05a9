"""Settings of the compiler: flags, and what they mean for the memory that buffers lie in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hloopt.memory.gpu.colors import GpuMemoryFlags


class Setting(NamedTuple):
    """The flags that the programs of a block are compiled with."""

    name: str
    flags: Mapping[str, str] = {}
    """Values by name."""

    def texts(self) -> list[str]:
        """The flags as the compiler reads them."""
        return [f"--{name}={value}" for name, value in self.flags.items()]

    def memory(self) -> GpuMemoryFlags:
        """The flags that decide which memory buffers lie in."""
        known = GpuMemoryFlags.__dataclass_fields__
        return GpuMemoryFlags.on(name for name in self.flags if name in known)


SETTINGS = (
    Setting("default"),
    Setting("collectives' memory apart", {"xla_gpu_enable_nccl_user_buffers": "true"}),
    Setting("default again"),
    Setting(
        "pipelined collectives",
        {
            "xla_gpu_enable_pipelined_all_reduce": "true",
            "xla_gpu_enable_pipelined_all_gather": "true",
            "xla_gpu_enable_pipelined_reduce_scatter": "true",
        },
    ),
    Setting("temporaries apart", {"xla_gpu_temp_buffer_use_separate_color": "true"}),
    Setting("loops unrolled by two", {"xla_gpu_enable_while_loop_double_buffering": "true"}),
    Setting("no products by Triton", {"xla_gpu_enable_triton_gemm": "false"}),
    Setting("fused slices", {"xla_gpu_enable_dynamic_slice_fusion": "true"}),
    Setting("default once more"),
    Setting("no scheduler", {"xla_gpu_enable_latency_hiding_scheduler": "false"}),
    Setting("symmetric memory", {"xla_gpu_experimental_enable_nccl_symmetric_buffers": "true"}),
)
