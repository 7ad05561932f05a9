"""Settings of XLA:GPU's scheduler: the flags for the compiler, the options for us."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

_BASE_MEMORY = 67_954_383_257
"""80 % of the bytes that XLA's description of an H100 SXM names."""

_EXPERIMENTAL = "xla_gpu_experimental_"
_FLAGS = {
    "parallel_collective_overlap_limit": f"{_EXPERIMENTAL}parallel_collective_overlap_limit",
    "parallel_async_compute_limit": f"{_EXPERIMENTAL}parallel_async_compute_limit",
    "collective_start_as_early_as_possible": (
        f"{_EXPERIMENTAL}collective_start_as_early_as_possible"
    ),
    "enable_collective_multi_streaming": f"{_EXPERIMENTAL}enable_collective_multi_streaming",
    "memory_limit_slop_factor": "xla_gpu_memory_limit_slop_factor",
    "enable_pipelined_p2p": "xla_gpu_enable_pipelined_p2p",
}
_PIPELINE = f"{_EXPERIMENTAL}pipeline_parallelism_opt_level"
_SOL = "xla_gpu_enable_analytical_sol_latency_estimator"

Times = Literal["fixed", "sol", "profile"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One way to run the scheduler."""

    name: str
    options: dict[str, Any] = field(default_factory=dict)
    """Of our pass, beside those that all settings have."""
    times: Times = "fixed"

    def flags(self) -> list[str]:
        """The flags of XLA that mean the same."""
        values: dict[str, Any] = {_SOL: self.times == "sol"}
        for name, value in self.options.items():
            if name == "pipeline_parallelism_opt_level":
                values[_PIPELINE] = f"PIPELINE_PARALLELISM_OPT_LEVEL_{value.upper()}"
            else:
                values[_FLAGS[name]] = value
        return [f"--{flag}={_text(value)}" for flag, value in values.items()]

    def all_options(self) -> dict[str, Any]:
        """The options of our pass."""
        return {
            "preset": "xla-gpu",
            "separate_memcpy_stream": False,  # the compiler is that of jaxlib 0.10.2
            "device_memory_size": _BASE_MEMORY,
            **self.options,
        }


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _overlap(limit: int, **more: Any) -> dict[str, Any]:
    return {"parallel_collective_overlap_limit": limit, **more}


SETTINGS = (
    Setting("default"),
    Setting("overlap 2", _overlap(2)),
    Setting("overlap 4", _overlap(4)),
    Setting("multi-streaming", _overlap(4, enable_collective_multi_streaming=True)),
    Setting("early starts", _overlap(2, collective_start_as_early_as_possible=True)),
    Setting("no memory", {"memory_limit_slop_factor": 0}),
    Setting("1 % of memory", _overlap(2, memory_limit_slop_factor=1)),
    Setting("3 % of memory", {"memory_limit_slop_factor": 3}),
    Setting("one computation", {"parallel_async_compute_limit": 1}),
    Setting("pipeline", {"pipeline_parallelism_opt_level": "enable"}),
    Setting("profile", times="profile"),
    Setting("profile, overlap 3", _overlap(3, memory_limit_slop_factor=2), times="profile"),
    Setting("speed of light", times="sol"),
)
