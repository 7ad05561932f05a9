"""Additions of a search to the options of an assignment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

UseName = tuple[str, int, int]
"""A use by the names that last: of the instruction, the operand's number, the slot in it."""
ValueName = tuple[str, int]
"""A value by the name of the instruction that defines it, and the slot there."""


@dataclass(frozen=True, slots=True)
class Hints:
    """Uses that have to read default memory, and buffers that get their places earlier or later."""

    denied: frozenset[UseName] = frozenset()
    ranks: Mapping[ValueName, int] = field(default_factory=dict)
    """By the first value of a buffer: less is earlier; 0 for all others."""


NO_HINTS = Hints()
