"""A target: the peak rates and sizes of one device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hloopt.targets.gpu import CudaDevice, Gpu
from hloopt.targets.native_types import NativeTypes

_WIDER = {
    "s4": "s8",
    "s8": "bf16",
    "f4": "f8",
    "f8": "bf16",
    "bf16": "f32",
    "f16": "f32",
    "s32": "f32",
    "f32": "f64",
}
"""The type whose rate stands in for one that has none."""
_SAME_RATE = {
    **{"pred": "s8", "u4": "s4", "u8": "s8", "s2": "s4", "u2": "s4", "s1": "s4", "u1": "s4"},
    **{"s16": "s32", "u16": "s32", "u32": "s32", "s64": "f64", "u64": "f64"},
    **{"c64": "f32", "c128": "f64"},
}


@dataclass(frozen=True, slots=True)
class Link:
    """A way to other devices; `bandwidth` is in bytes per second, both directions together."""

    name: str
    bandwidth: float
    source: str


@dataclass(frozen=True, slots=True)
class Target:
    """A device. Rates are in flops per second by element type, peaks that nothing reaches."""

    name: str
    title: str
    matrix: Mapping[str, float]
    """Of the units for dot products."""
    vector: Mapping[str, float]
    """Of all other arithmetic; empty where no figure is published."""
    memory_size: int
    """Bytes."""
    memory_bandwidth: float
    """Bytes per second, to the device's own memory."""
    links: tuple[Link, ...]
    sources: tuple[str, ...]
    """The origin of the figures."""
    gpu: Gpu | None = None
    """Figures for the speed-of-light model; None where that model does not apply."""
    cuda: CudaDevice | None = None
    """Figures for the compiler of XLA:GPU; None where that has no such device."""
    spaces: Mapping[str, int] = field(default_factory=dict)
    """Bytes of its other memories, by name: VMEM, SMEM."""
    space_bandwidths: Mapping[str, float] = field(default_factory=dict)
    """Bytes per second to those of them whose rate is known."""
    native_types: NativeTypes | None = None
    """The operations it does in types of low precision; None where that is not known."""

    def matrix_rate(self, element_type: str) -> float | None:
        """Flops per second of dot products, by the type of the operands; None if unknown.

        A type without units of its own runs as the next wider one that has.
        """
        kind = rated_type(self.matrix, element_type)
        return None if kind is None else self.matrix[kind]

    def vector_rate(self, element_type: str) -> float | None:
        """Flops per second elsewhere, by the type of the result; None if unknown."""
        kind = rated_type(self.vector, element_type)
        return None if kind is None else self.vector[kind]

    def ridge(self, element_type: str = "bf16") -> float | None:
        """Flops per byte above which dot products are bound by arithmetic."""
        rate = self.matrix_rate(element_type)
        return None if rate is None else rate / self.memory_bandwidth


def rated_type(rates: Mapping[str, float], element_type: str) -> str | None:
    """The type whose rate is that of an element type: itself, or one that stands in; None without
    either."""
    kind: str | None = _SAME_RATE.get(element_type, element_type)
    if element_type.startswith(("f4e", "f6e", "f8e")):
        kind = "f4" if element_type.startswith("f4e") else "f8"
    while kind is not None:
        if kind in rates:
            return kind
        kind = _WIDER.get(kind)
    return None
