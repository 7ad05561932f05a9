"""Targets written as files that `load_target` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hloopt.targets.gpu import CudaDevice, Gpu
from hloopt.targets.native_types import NativeType, NativeTypes
from hloopt.targets.target import Target


def target_yaml(target: Target) -> str:
    """The description of a target; `load_target` gives the same figures to 12 digits."""
    import yaml

    sources = dict(text.split(": ", 1) for text in target.sources)
    fields: dict[str, Any] = {"title": target.title}
    for kind, rates in (("matrix", target.matrix), ("vector", target.vector)):
        if rates:
            fields[f"{kind}_teraflops"] = _scaled(rates, 1e12)
        if kind in sources:
            fields[f"{kind}_source"] = sources[kind]
    memory = {"gigabytes": target.memory_size, "gigabytes_per_second": target.memory_bandwidth}
    fields["memory"] = _scaled(memory, 1e9)
    if "memory" in sources:
        fields["memory_source"] = sources["memory"]
    if target.spaces:
        fields["memory_spaces_mebibytes"] = _scaled(target.spaces, 1 << 20)
    if target.space_bandwidths:
        fields["memory_spaces_gigabytes_per_second"] = _scaled(target.space_bandwidths, 1e9)
    if "memory_spaces" in sources:
        fields["memory_spaces_source"] = sources["memory_spaces"]
    if target.links:
        fields["links"] = {
            link.name: {"gigabytes_per_second": _short(link.bandwidth / 1e9), "source": link.source}
            for link in target.links
        }
    if target.gpu is not None:
        fields["gpu"] = _gpu(target.gpu)
    if target.cuda is not None:
        fields["cuda"] = _cuda(target.cuda, target.gpu)
    if target.native_types is not None:
        fields["native_types"] = _native_types(target.native_types)
    text: str = yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=100)
    return text


def _cuda(device: CudaDevice, gpu: Gpu | None) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "compute_capability": device.compute_capability,
        "name": device.name,
    }
    if gpu is None:  # else its section has the rest
        fields |= {
            "cores": device.cores,
            "units_per_core": device.units_per_core,
            "gigahertz": _short(device.clock / 1e9),
            "l2_bytes": device.l2_size,
        }
    return fields


def _gpu(gpu: Gpu) -> dict[str, Any]:
    network = gpu.network
    return {
        "cores": gpu.cores,
        "units_per_core": gpu.units_per_core,
        "gigahertz": _short(gpu.clock / 1e9),
        "l2_bytes": gpu.l2_size,
        **({} if gpu.tables is None else {"tables": gpu.tables}),
        "kernel_formula": gpu.kernel_formula,
        "network": {
            "launch_us": _short(network.launch),
            "card_gigabytes_per_second": _short(network.card_bandwidth / 1e9),
            "chunk_us": _short(network.chunk_time),
            "chunk_bytes": network.chunk_size,
            "round_trip_us": _short(network.round_trip),
            "node_size": network.node_size,
            "partition_size": network.partition_size,
            "lanes": network.lanes,
            "lane_gigabytes_per_second": _short(network.lane_bandwidth / 1e9),
            "barrier_us": _short(network.barrier),
        },
        "source": gpu.source,
    }


def _native_types(native: NativeTypes) -> dict[str, Any]:
    return {
        "source": native.source,
        "types": {name: native_type_parts(each) for name, each in native.types.items()},
    }


def native_type_parts(native: NativeType) -> dict[str, list[str]]:
    """The opcodes that are native to a type, sorted, by the field that has them."""
    parts = {
        "opcodes": native.opcodes,
        "applied": native.applied,
        "widening": native.widening,
        "mixing": native.mixing,
    }
    return {part: sorted(opcodes) for part, opcodes in parts.items() if opcodes}


def _scaled(figures: Mapping[str, float], unit: float) -> dict[str, float]:
    return {name: _short(figure / unit) for name, figure in figures.items()}


def _short(number: float) -> float:
    """The number with 12 digits, an integer where it is one."""
    short = float(f"{number:.12g}")
    return int(short) if short.is_integer() else short
