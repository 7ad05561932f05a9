"""Packed files, known by what their names end in: `.gz`, `.zst`, `.xz` or `.bz2`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hloopt.diagnostics import HloError


class _Format(NamedTuple):
    """How to pack and unpack; the libraries are imported when they are used."""

    magic: bytes
    """What packed data begins with."""
    pack: Callable[[bytes], bytes]
    unpack: Callable[[bytes], bytes]


def _pack_gzip(data: bytes) -> bytes:
    import gzip

    return gzip.compress(data, mtime=0)


def _unpack_gzip(data: bytes) -> bytes:
    import gzip
    import zlib

    try:
        return gzip.decompress(data)
    except zlib.error as error:
        raise ValueError(error) from None


def _pack_zstandard(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=9).compress(data)


def _unpack_zstandard(data: bytes) -> bytes:
    """All frames, each to its end: the library takes a file that is cut short for a whole one."""
    import zstandard

    parts: list[bytes] = []
    try:
        while data:
            frame = zstandard.ZstdDecompressor().decompressobj()
            parts.append(frame.decompress(data))
            if not frame.eof:
                raise ValueError("the file is cut short")
            data = frame.unused_data
    except zstandard.ZstdError as error:
        raise ValueError(error) from None
    return b"".join(parts)


def _pack_xz(data: bytes) -> bytes:
    import lzma

    return lzma.compress(data)


def _unpack_xz(data: bytes) -> bytes:
    import lzma

    try:
        return lzma.decompress(data)
    except lzma.LZMAError as error:
        raise ValueError(error) from None


def _pack_bzip2(data: bytes) -> bytes:
    import bz2

    return bz2.compress(data)


def _unpack_bzip2(data: bytes) -> bytes:
    import bz2

    return bz2.decompress(data)


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


def unpack(data: bytes, path: str) -> bytes:
    """The content of a file by its suffix. Raises HloError for damaged data."""
    suffix = _suffix(path)
    if suffix is None:
        return data
    try:
        return _FORMATS[suffix].unpack(data)
    except (OSError, EOFError, ValueError, ImportError) as error:
        raise HloError(f"cannot unpack {path}: {error}", code="HLO003") from None


def pack(data: bytes, path: str) -> bytes:
    """What to write into a file by its suffix; the same for the same data. Raises HloError."""
    suffix = _suffix(path)
    try:
        return data if suffix is None else _FORMATS[suffix].pack(data)
    except ImportError as error:  # a Python that was built without the library
        raise HloError(f"cannot pack {path}: {error}", code="HLO004") from None


def suffix_for(data: bytes) -> str | None:
    """How the name of a file with this data should end; None where it is not packed."""
    return next((s for s, how in _FORMATS.items() if data.startswith(how.magic)), None)


def _suffix(path: str) -> str | None:
    return next((suffix for suffix in _FORMATS if path.endswith(suffix)), None)
