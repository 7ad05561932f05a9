"""Options of rematerialization, with XLA's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from hloopt.diagnostics import PipelineError
from hloopt.ir import Instruction
from hloopt.options import Bytes, PassOptions, option
from hloopt.passes.rematerialization.sizes import CompactShapeFunction, SizeFunction

OnRematerialized = Callable[[Instruction, Instruction], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class RematerializationOptions(PassOptions):
    """Which memory there is, how to do with less, and how to count."""

    memory_limit_bytes: Bytes | None = option(None, "memory for the module; must be given")
    recompute: bool = option(False, "compute values again right before their later uses")
    compress: bool = option(False, "keep values in a compact layout between their uses")
    host_offload: bool = option(False, "keep values in host memory between their uses")
    algorithm: Literal["always", "peak-priority"] = option(
        "always", "whether to look at each instruction above the limit in turn, or at the peak"
    )
    block_size_limit: int = option(1, "the most instructions in a row to recompute together")
    block_rematerialization_factor: int = option(
        1, "effort for longer blocks, as a multiple of the effort for single instructions"
    )
    min_remat_size: Bytes = option(0, "bytes: smaller results are not rematerialized")
    size_function: SizeFunction = option(
        "bytes", "how to count the bytes of a shape; a function of it from Python"
    )
    compact_shape_function: CompactShapeFunction = option(
        "identity", "the layout of arrays while compressed; a function of a shape from Python"
    )
    host_memory_space: int | None = option(None, "the memory space of the host, for host_offload")
    bandwidth_to_host_bytes_per_second: float | None = option(None, "for host_offload")
    bandwidth_from_host_bytes_per_second: float | None = option(None, "for host_offload")
    flops_per_second: float | None = option(None, "rate of the cost model, for host_offload")
    transcendentals_per_second: float | None = option(None, "rate of the cost model")
    bytes_per_second: float | None = option(None, "rate of the cost model; none: unlimited")
    async_computation_parallelism: Mapping[str, int] | None = option(
        None, "how often computations that are started asynchronously run at a time, by name"
    )
    execution_threads: tuple[str, ...] = option((), "only computations on these; none: all")
    on_rematerialized: OnRematerialized | None = option(
        None, "told of each new instruction, with the one it stands for; from Python only"
    )
    simulated_elapsed_seconds: float = option(
        0.0, "seconds that the pass is taken to have run when it starts, to test its warning"
    )

    def __post_init__(self) -> None:
        if self.block_size_limit < 1:
            raise PipelineError(
                f"block_size_limit is {self.block_size_limit}", help="the shortest block is 1"
            )
        if not self.host_offload:
            return
        needed = (
            *("host_memory_space", "bandwidth_to_host_bytes_per_second"),
            "bandwidth_from_host_bytes_per_second",
        )
        missing = [name for name in needed if getattr(self, name) is None]
        if missing:
            raise PipelineError(
                f"host_offload needs {' and '.join(missing)}",
                help="the memory space of the host is 5 in XLA, bandwidths are in bytes per second",
            )
        for name in needed[1:]:
            if getattr(self, name) <= 0:
                raise PipelineError(f"{name} is {getattr(self, name)}", help="give a positive rate")

    @property
    def has_strategy(self) -> bool:
        return self.recompute or self.compress or self.host_offload


OPTION_GROUPS = {
    "memory": (
        *("memory_limit_bytes", "size_function", "async_computation_parallelism"),
        "execution_threads",
    ),
    "strategies": (
        *("recompute", "compress", "host_offload", "algorithm", "block_size_limit"),
        *("block_rematerialization_factor", "min_remat_size", "compact_shape_function"),
        "on_rematerialized",
    ),
    "host offload": (
        *("host_memory_space", "bandwidth_to_host_bytes_per_second"),
        *("bandwidth_from_host_bytes_per_second", "flops_per_second"),
        *("transcendentals_per_second", "bytes_per_second"),
    ),
    "tests": ("simulated_elapsed_seconds",),
}
