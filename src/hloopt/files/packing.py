"""Packed files, known by what their names end in: `.gz`, `.zst`, `.xz` or `.bz2`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from hloopt.diagnostics import HloError


class _Format(NamedTuple):
    """Functions that pack and unpack; the libraries are imported when they are used."""

    magic: bytes
    """The bytes that packed data begins with."""
    pack: Callable[[bytes], bytes]
    unpack: Callable[[bytes], Iterator[bytes]]
    """Gives pieces of limited size. Raises ValueError, OSError or EOFError for damaged data."""


_PIECE = 1 << 20  # bytes unpacked at a time


def _pack_gzip(data: bytes) -> bytes:
    import gzip

    return gzip.compress(data, mtime=0)


def _unpack_gzip(data: bytes) -> Iterator[bytes]:
    import zlib

    while data:
        stream = zlib.decompressobj(zlib.MAX_WBITS | 16)
        position = 0
        while not stream.eof:
            given = stream.unconsumed_tail
            if not given:
                given = data[position : position + _PIECE]
                position += len(given)
                if not given:
                    raise EOFError("the file is cut short")
            try:
                yield stream.decompress(given, _PIECE)
            except zlib.error as error:
                raise ValueError(error) from None
        data = (stream.unused_data + data[position:]).lstrip(b"\0")


def _pack_zstandard(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=9).compress(data)


_ZSTANDARD_PIECE = 1 << 12  # packed bytes: 4 of them can be a block of 128 KiB


def _unpack_zstandard(data: bytes) -> Iterator[bytes]:
    """All frames, each to its end: the library takes a file that is cut short for a whole one."""
    import zstandard

    position = 0
    while position < len(data):
        frame = zstandard.ZstdDecompressor().decompressobj()
        while not frame.eof:
            given = data[position : position + _ZSTANDARD_PIECE]
            if not given:
                raise ValueError("the file is cut short")
            position += len(given)
            try:
                yield frame.decompress(given)
            except zstandard.ZstdError as error:
                raise ValueError(error) from None
        position -= len(frame.unused_data)


def _pack_xz(data: bytes) -> bytes:
    import lzma

    return lzma.compress(data)


def _unpack_xz(data: bytes) -> Iterator[bytes]:
    import lzma

    try:
        yield from _streams(lzma.LZMADecompressor, data)
    except lzma.LZMAError as error:
        raise ValueError(error) from None


def _pack_bzip2(data: bytes) -> bytes:
    import bz2

    return bz2.compress(data)


def _unpack_bzip2(data: bytes) -> Iterator[bytes]:
    import bz2

    return _streams(bz2.BZ2Decompressor, data)


def _streams(make: Callable[[], Any], data: bytes) -> Iterator[bytes]:
    """The content of streams of one of Python's decompressors, one behind the other.

    As in Python, what is behind the last stream does not count.
    """
    rest = data
    while rest:
        stream = make()
        given = rest
        while not stream.eof:
            if stream.needs_input and not given:
                raise EOFError("the file is cut short")
            try:
                piece = stream.decompress(given, _PIECE)
            except Exception:
                if rest is data:
                    raise
                return
            given = b""
            yield piece
        rest = stream.unused_data


_FORMATS = {
    ".gz": _Format(b"\x1f\x8b", _pack_gzip, _unpack_gzip),
    ".zst": _Format(b"\x28\xb5\x2f\xfd", _pack_zstandard, _unpack_zstandard),
    ".xz": _Format(b"\xfd7zXZ\0", _pack_xz, _unpack_xz),
    ".bz2": _Format(b"BZh", _pack_bzip2, _unpack_bzip2),
}
SUFFIXES = tuple(_FORMATS)


def unpacked_name(path: str) -> str:
    """`path` without the suffix that says how the file is packed."""
    suffix = _suffix(path)
    return path.removesuffix(suffix) if suffix else path


_LIMIT = "HLOOPT_MAX_UNPACKED_GIB"
_LIMIT_GIB = 1


def unpack(data: bytes, path: str) -> bytes:
    """The content of a file by its suffix. Raises HloError for damaged data, and for too many."""
    suffix = _suffix(path)
    if suffix is None:
        return data
    limit = _limit()
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in _FORMATS[suffix].unpack(data):
            pieces.append(piece)
            size += len(piece)
            if size > limit:
                raise HloError(
                    f"{path} unpacks to more than {limit / (1 << 30):g} GiB",
                    help=f"if it should, set the variable {_LIMIT} to a larger number",
                    code="HLO003",
                )
    except (OSError, EOFError, ValueError, ImportError) as error:
        raise HloError(f"cannot unpack {path}: {error}", code="HLO003") from None
    return b"".join(pieces)


def _limit() -> float:
    """The most bytes that a file may unpack to."""
    text = os.environ.get(_LIMIT) or str(_LIMIT_GIB)
    try:
        number = float(text)
    except ValueError:
        number = 0
    if not number > 0:
        raise HloError(f"{_LIMIT}={text}: expected a number of GiB", code="HLO003")
    return number * (1 << 30)


def pack(data: bytes, path: str) -> bytes:
    """The data packed by the suffix of a file; the same for the same data. Raises HloError."""
    suffix = _suffix(path)
    try:
        return data if suffix is None else _FORMATS[suffix].pack(data)
    except ImportError as error:  # a Python that was built without the library
        raise HloError(f"cannot pack {path}: {error}", code="HLO004") from None


def suffix_for(data: bytes) -> str | None:
    """The suffix for a file with this data; None where it is not packed."""
    return next((s for s, how in _FORMATS.items() if data.startswith(how.magic)), None)


def _suffix(path: str) -> str | None:
    return next((suffix for suffix in _FORMATS if path.endswith(suffix)), None)
