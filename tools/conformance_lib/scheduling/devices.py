"""The devices that records about models of time name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from conformance_lib.errors import RecordError
from hloopt.targets import Target, load_target
from hloopt.targets.gpu import Gpu, Network

GIGA = 1e9
HOPPER = "h100_sxm"
_TARGETS = {"h100": HOPPER, "h100_sxm": HOPPER, "h200": "h200_sxm", "b200": "b200"}
_A6000 = "rtx_a6000"
_SCALE = 0.45
"""The factor by which XLA multiplies its base figures of networks."""


def gpu_of(target: Target) -> Gpu:
    assert target.gpu is not None
    return target.gpu


def find_target(device: Any) -> Target:
    """The device of a record: a name, or an object with `name`; Hopper without one or for "any".

    Raises RecordError for a device that is not known.
    """
    name = device.get("name") if isinstance(device, Mapping) else device
    if name in (None, "any"):
        name = HOPPER
    if name == _A6000:
        return _a6000()
    if name not in _TARGETS:
        raise RecordError(f"unknown device {name}")
    return load_target(_TARGETS[name])


def _a6000() -> Target:
    """The A6000 as the document describes it; XLA has no figures of its network."""
    base = load_target(HOPPER)
    network = replace(
        gpu_of(base).network,
        launch=100 * _SCALE,
        card_bandwidth=111.12 * _SCALE * GIGA,
        chunk_time=13.34 * _SCALE,
        round_trip=68.89 * _SCALE,
        lanes=0,
        barrier=1.5,
    )
    gpu = replace(
        gpu_of(base),
        cores=84,
        units_per_core=128,
        clock=1.41 * GIGA,
        l2_size=6 << 20,
        network=network,
    )
    return replace(base, memory_bandwidth=768.096 * GIGA, gpu=gpu)


def with_network(target: Target, network: Network, *, is_measured: bool) -> Target:
    """The device with another network, with or without tables of measured throughputs.

    Records are of XLA's unit tests, whose all-reduces in one kernel have a formula.
    """
    gpu = gpu_of(target)
    tables = gpu.tables if is_measured else None
    return replace(target, gpu=replace(gpu, network=network, tables=tables, kernel_formula=True))
