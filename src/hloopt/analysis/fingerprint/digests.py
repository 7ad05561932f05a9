"""Digests of bytes, texts and lists of digests: SHA-256 cut to 128 bits."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

SIZE = 16  # bytes


def digest_of(kind: bytes, data: bytes) -> bytes:
    """The digest of `data` of a kind; kinds are of one byte, equal data of two kinds differ."""
    return sha256(kind + data).digest()[:SIZE]


def digest_of_texts(kind: bytes, texts: Iterable[str]) -> bytes:
    """The digest of a list of texts; where one ends counts. O(length)."""
    parts: list[bytes] = []
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        parts += len(data).to_bytes(8, "big"), data
    return digest_of(kind, b"".join(parts))
