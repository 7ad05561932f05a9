"""Notes on while loops: the trip count and induction variable in their backend_config, hints."""

from __future__ import annotations

import json

from hloopt.diagnostics import HloError
from hloopt.ir.attributes.values.strings import parse_string_or_dictionary
from hloopt.ir.instruction import Instruction

STAYS_WITH_ONE_TRIP = "skip-simplify-while-loops_trip-count-one"
"""The frontend attribute of a loop that is not to be inlined where it makes one trip."""


def known_trip_count(loop: Instruction) -> int | None:
    """The trip count that the backend_config of a loop states."""
    known = (backend_config(loop) or {}).get("known_trip_count")
    if not isinstance(known, dict):
        return None
    try:
        number = int(known.get("n", 0))
    except (TypeError, ValueError):
        return None
    return number if number >= 0 else None


def backend_config(loop: Instruction) -> dict[str, object] | None:
    """The backend_config of a loop, which is a JSON object: empty where there is none.

    None where it is anything else.
    """
    text = loop.attributes.get("backend_config")
    if text is None:
        return {}
    try:
        config = json.loads(parse_string_or_dictionary(text))
    except (ValueError, RecursionError, HloError):
        return None
    return config if isinstance(config, dict) else None
