"""Element types of HLO arrays, and their sizes."""

from __future__ import annotations

from typing import NamedTuple


class ElementType(NamedTuple):
    """One element type. `bits` is the width of its value (0 for token and opaque)."""

    name: str
    bits: int
    kind: str  # "pred", "signed", "unsigned", "float", "complex", "token" or "opaque"

    @property
    def bytes(self) -> int:
        """Bytes of one element in memory, unless a layout packs it (`E(n)`)."""
        return (self.bits + 7) // 8

    @property
    def is_floating(self) -> bool:
        return self.kind == "float"

    @property
    def is_integral(self) -> bool:
        return self.kind in ("signed", "unsigned")


def _table() -> dict[str, ElementType]:
    kinds = {
        "pred": {"pred": 1},
        "signed": {f"s{n}": n for n in (1, 2, 4, 8, 16, 32, 64)},
        "unsigned": {f"u{n}": n for n in (1, 2, 4, 8, 16, 32, 64)},
        "float": {
            **{"f4e2m1fn": 4, "f6e2m3fn": 6, "f6e3m2fn": 6, "f8e3m4": 8, "f8e4m3": 8},
            **{"f8e4m3b11fnuz": 8, "f8e4m3fn": 8, "f8e4m3fnuz": 8, "f8e5m2": 8},
            **{"f8e5m2fnuz": 8, "f8e8m0fnu": 8, "bf16": 16, "f16": 16, "f32": 32, "f64": 64},
        },
        "complex": {"c64": 64, "c128": 128},
        "token": {"token": 0},
        "opaque": {"opaque": 0},
    }
    return {
        name: ElementType(name, bits, kind)
        for kind, names in kinds.items()
        for name, bits in names.items()
    }


ELEMENT_TYPES = _table()
"""Every element type by its name in HLO text."""
