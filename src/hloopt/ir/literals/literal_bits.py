"""Floating-point values as bits, and as texts that are read as these bits."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from functools import cache

from hloopt.ir.literals.literal_values import float_text, nan_payload_bits, small_float_type
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.patterns import pattern


def float_texts(codes: Sequence[int], name: str) -> Iterator[str]:
    """Values of the type `name`, given as bits, as texts. O(values)."""
    known: dict[int, str] = _plain_f32_texts(codes) if name == "f32" else {}
    as_text = _float_text(name)
    for code in codes:
        if code not in known:
            known[code] = as_text(code)
    return map(known.__getitem__, codes)


def _plain_f32_texts(codes: Sequence[int]) -> dict[int, str]:
    """The texts of finite f32 values other than 0, by their bits: what there are millions of."""
    every = list(set(codes))
    values = struct.unpack(f"<{len(every)}f", struct.pack(f"<{len(every)}I", *every))
    found: dict[int, str] = {}
    pack = struct.Struct("<f").pack
    for code, value in zip(every, values, strict=True):
        if value and value - value == 0:
            text = f"{value:.6g}"
            found[code] = text if pack(float(text)) == pack(value) else f"{value:.9g}"
    return found


_NAN = pattern(r"(-?)nan(?:\((0x[0-9a-f]+)\))?")
_FORMATS = {"f64": ("<Q", "<d"), "f32": ("<I", "<f"), "f16": ("<H", "<e"), "bf16": ("<I", "<f")}


@cache
def _float_text(name: str) -> Callable[[int], str]:
    """Turns the bits of a value into a text that is read as these bits.

    That is the text XLA prints unless XLA reads it as another value: -0 as 0, for instance.
    """
    payload_bits = nan_payload_bits(name)
    sign_bit = ELEMENT_TYPES[name].bits - 1
    exponents = (1 << sign_bit) - (1 << payload_bits)

    def text(code: int) -> str:
        payload = code & ((1 << payload_bits) - 1)
        if payload and code & exponents == exponents:
            sign = "-" if code >> sign_bit else ""
            return float_text(f"{sign}nan({payload:#x})", name)
        exact = _plain_text(code, name)
        printed = float_text(exact, name)
        return printed if float_text(printed, name) == printed else exact

    return text


def _plain_text(code: int, name: str) -> str:
    if name not in _FORMATS:
        return _small_floats(name)[code & (len(_small_floats(name)) - 1)]
    integer, real = _FORMATS[name]
    bits = code << 16 if name == "bf16" else code
    return repr(struct.unpack(real, struct.pack(integer, bits))[0])


@cache
def _small_floats(name: str) -> list[str]:
    """The text of every value of a type of at most 8 bits, by its bits."""
    import numpy as np

    codes = np.arange(1 << ELEMENT_TYPES[name].bits, dtype=np.uint8)
    with np.errstate(all="ignore"):
        values = codes.view(small_float_type(name)).astype(np.float64)
    has_sign = name != "f8e8m0fnu"
    return [
        "-nan" if has_sign and np.isnan(value) and np.signbit(value) else repr(float(value))
        for value in values
    ]


@cache
def float_code(name: str) -> Callable[[str], int]:
    """Turns a text that XLA prints into the bits of the value."""
    if name not in _FORMATS:
        as_text = _float_text(name)
        every = range(len(_small_floats(name)))
        return {float_text(as_text(code), name): code for code in every}.__getitem__
    payload_bits = nan_payload_bits(name)
    sign_bit = ELEMENT_TYPES[name].bits - 1
    quiet = 1 << (payload_bits - 1)
    exponents = (1 << sign_bit) - (1 << payload_bits)
    integer, real = _FORMATS[name]

    def code(token: str) -> int:
        nan = _NAN.fullmatch(token)
        if nan:
            payload = int(nan[2], 16) if nan[2] else quiet
            return exponents | payload | (bool(nan[1]) << sign_bit)
        bits = int(struct.unpack(integer, struct.pack(real, float(token)))[0])
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 if name == "bf16" else bits

    return code
