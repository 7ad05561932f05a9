"""A target as XLA describes a GPU to its compiler: a GpuTargetConfigProto in text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import NamedTuple

from hloopt.diagnostics import HloError
from hloopt.patterns import pattern
from hloopt.targets.gpu import CudaDevice
from hloopt.targets.target import Target


class _Limits(NamedTuple):
    """Limits of a compute capability, in bytes: CUDA C++ Programming Guide, Technical
    Specifications per Compute Capability."""

    shared_memory_per_core: int
    shared_memory_per_block: int
    """If a kernel opts in; without, it is `_SHARED_MEMORY_PER_BLOCK`."""


_KIB = 1 << 10
_LIMITS = {
    "8.0": _Limits(164 * _KIB, 163 * _KIB),
    **dict.fromkeys(("9.0", "10.0", "10.3"), _Limits(228 * _KIB, 227 * _KIB)),
}
_SHARED_MEMORY_PER_BLOCK = 48 * _KIB
_OF_ALL = {  # the compute capabilities above
    "threads_per_block_limit": 1024,
    "threads_per_warp": 32,
    "threads_per_core_limit": 2048,
    "registers_per_core_limit": 65536,
    "registers_per_block_limit": 65536,
    "block_dim_limit_x": (1 << 31) - 1,
    "block_dim_limit_y": 65535,
    "block_dim_limit_z": 65535,
    "shared_memory_per_block": _SHARED_MEMORY_PER_BLOCK,
}
_CUDNN = (9, 10)
"""The version that XLA may take for granted: for newer ones it makes more fusions."""


def describe_gpu(target: Target) -> str:
    """The description of a target. Raises HloError where figures for that are missing."""
    device = target.cuda
    if device is None:
        raise HloError(
            f"XLA:GPU does not compile for {target.name}: the target has no section cuda",
            help="h100_sxm, b200, a100_sxm_80 and others have; so does XLA's own description, "
            "FILE.txtpb",
            code="HLO014",
        )
    capability = device.compute_capability
    number = capability.rstrip("af")
    if number not in _LIMITS:
        raise HloError(
            f"limits of compute capability {number} are not known",
            help=f"known are {', '.join(_LIMITS)}; or give XLA's own description, FILE.txtpb",
            code="HLO014",
        )
    return "\n".join(_lines(target, device, _LIMITS[number])) + "\n"


_UNKNOWN = pattern(
    r'.*GpuTargetConfigProto: (?P<line>\d+):\d+: .* has no field named "(?P<name>\w+)"'
)


def without_unknown_field(description: str, log: str) -> tuple[str, str] | None:
    """A description of a newer XLA without the field that an older one does not know, and its name.

    Its log names one at a time. None where it complains of nothing, or of something else, and where
    the field does not begin its line.
    """
    found = next(filter(None, map(_UNKNOWN.match, log.splitlines())), None)
    if found is None:
        return None
    lines = description.splitlines()
    first = last = int(found["line"]) - 1
    if not (0 <= first < len(lines) and lines[first].lstrip().startswith(found["name"])):
        return None
    depth = lines[first].count("{") - lines[first].count("}")
    while depth > 0 and last + 1 < len(lines):
        last += 1
        depth += lines[last].count("{") - lines[last].count("}")
    return "\n".join(lines[:first] + lines[last + 1 :]) + "\n", found["name"]


def check_description(description: str, path: str) -> None:
    """Raise HloError for a text that cannot be XLA's description of a GPU, of which XLA dies."""
    if "core_count" not in description:
        raise HloError(
            f"{path} is no GpuTargetConfigProto of XLA: it has no core_count", code="HLO014"
        )


def _lines(target: Target, device: CudaDevice, limits: _Limits) -> Iterator[str]:
    capability = device.compute_capability
    major, _, minor = capability.rstrip("af").partition(".")
    features = "ACCELERATED_FEATURES" if capability.endswith("a") else "NONE"
    yield "gpu_device_info {"
    for name, value in {
        **_OF_ALL,
        "shared_memory_per_core": limits.shared_memory_per_core,
        "shared_memory_per_block_optin": limits.shared_memory_per_block,
        "core_count": device.cores,
        "fpus_per_core": device.units_per_core,
        "memory_bandwidth": round(target.memory_bandwidth),
        "l2_cache_size": device.l2_size,
        "clock_rate_ghz": device.clock / 1e9,
        "device_memory_size": target.memory_size,
    }.items():
        yield f"  {name}: {value}"
    yield "  cuda_compute_capability {"
    yield f"    major: {major} minor: {minor} feature_extension: {features}"
    yield "  }"
    yield "}"
    yield 'platform_name: "CUDA"'
    yield f"dnn_version_info {{ major: {_CUDNN[0]} minor: {_CUDNN[1]} }}"
    yield f"device_description_str: {json.dumps(device.name)}"
