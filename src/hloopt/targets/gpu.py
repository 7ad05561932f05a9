"""Figures of a GPU for the speed-of-light model and for XLA's compiler, beside its peak rates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The network of devices: within a node by NVLink, between nodes by network cards.

    Times are in microseconds, bandwidths in bytes per second.
    """

    launch: float
    """Before a collective sends anything."""
    card_bandwidth: float
    """Of one device to other nodes."""
    chunk_time: float
    """Preparing one chunk."""
    chunk_size: int
    """Bytes that are sent at a time."""
    round_trip: float
    node_size: int
    """Devices that NVLink connects."""
    partition_size: int
    """Devices among which a collective counts as within a node: XLA's option `partition_size`, by
    default those of a node. Formulas of steps between nodes go by `node_size` all the same."""
    lanes: int
    """NVLink lanes of a device."""
    lane_bandwidth: float
    """One way."""
    barrier: float
    """Waiting for each other within a node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """A GPU as one kernel sees it."""

    cores: int
    """Streaming multiprocessors."""
    units_per_core: int
    """Lanes for 32-bit arithmetic, two flops per cycle each."""
    clock: float
    """Cycles per second."""
    l2_size: int
    """Bytes."""
    tables: str | None
    """The measured throughputs that are those of the device: a name for `load_tables`."""
    kernel_formula: bool
    """Whether an all-reduce in a node that XLA made a kernel of its own has a formula, instead of
    the time that was measured of the library's."""
    network: Network
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CudaDevice:
    """A GPU as the compiler of XLA:GPU is told of it."""

    compute_capability: str
    """As XLA names it: `9.0a`."""
    name: str
    """The driver's name of the device, by which XLA finds its tables of measurements."""
    cores: int
    """Streaming multiprocessors."""
    units_per_core: int
    clock: float
    """Cycles per second."""
    l2_size: int
    """Bytes."""
