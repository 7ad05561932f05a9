"""How often loops run, where the module says so."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.patterns import pattern

_KNOWN = pattern(r'\\?"known_trip_count\\?":\s*\{\s*\\?"n\\?":\s*\\?"(\d{1,18})\\?"')


def trip_count(loop: Instruction) -> int | None:
    """How often the body of a while runs, or None where that is not known."""
    known = _KNOWN.search(loop.attributes.get("backend_config", ""))
    return int(known[1]) if known else None
