"""Names of passes that stand for options as well."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Preset(NamedTuple):
    """A name of a pass that stands for options as well; those that are given go before them."""

    pass_name: str
    options: Mapping[str, object]


def _normalization(low: str, high: str) -> Preset:
    return Preset("float-normalization", {"float_support": {"low": low, "high": high}})


PRESETS = {
    "bf16-mixed-precision-removal": Preset(
        "float-normalization", {"float_support": {"operand": True, "output": True, "mixed": False}}
    ),
    "float-normalization-bf16": _normalization("bf16", "f32"),
    "float-normalization-f4e2m1fn": _normalization("f4e2m1fn", "f16"),
    "float-normalization-f8e3m4": _normalization("f8e3m4", "f16"),
    "float-normalization-f8e4m3": _normalization("f8e4m3", "f16"),
    "float-normalization-f8e4m3b11fnuz": _normalization("f8e4m3b11fnuz", "f16"),
    "float-normalization-f8e4m3fn": _normalization("f8e4m3fn", "f16"),
    "float-normalization-f8e4m3fnuz": _normalization("f8e4m3fnuz", "f16"),
    "float-normalization-f8e5m2": _normalization("f8e5m2", "f16"),
    "float-normalization-f8e5m2fnuz": _normalization("f8e5m2fnuz", "f16"),
    "float-normalization-f8e8m0fnu": _normalization("f8e8m0fnu", "f32"),
    "float-normalization-s4": _normalization("s4", "s8"),
    "float-normalization-u4": _normalization("u4", "u8"),
}
"""Names that XLA gives to one pass with several options: for float-normalization the types in which
XLA:CPU cannot compute, each with the one in which it does."""
