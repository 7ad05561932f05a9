"""Names for files that are made of what a module says."""

from __future__ import annotations

import os

LONGEST = 255
"""Bytes of a file's name that common file systems allow."""


def file_name(stem: str, ending: str) -> str:
    """`stem` and `ending` as the name of a file; what no name can have or no eye sees is `_`.

    A name that is too long or has a `_` in place of something else gets a number that tells stems
    apart.
    """
    shown = "".join(c if c.isprintable() and c not in "/\\" else "_" for c in stem)
    if shown == stem and len(os.fsencode(stem + ending)) <= LONGEST:
        return stem + ending
    from hashlib import sha256

    number = "-" + sha256(stem.encode(errors="backslashreplace")).hexdigest()[:12]
    return _beginning(shown, LONGEST - len(number + ending)) + number + ending


def temporary_name(name: str) -> str:
    """A name for what is to become the file `name`: hidden, and used once."""
    ending = f".{os.getpid()}-{os.urandom(4).hex()}.tmp"
    return f".{_beginning(name, LONGEST - 1 - len(ending))}{ending}"


def _beginning(name: str, size: int) -> str:
    """The longest beginning of at most `size` bytes."""
    return os.fsencode(name)[:size].decode(errors="ignore")
