"""Reading files of times: what all formats share."""

from __future__ import annotations

import json
from typing import TypeGuard

from hloopt.diagnostics import HloError

LONGEST = 1e15
"""More cycles or microseconds than anything takes: sums of shorter times lose no cycle."""


def load_json(text: str, name: str, help: str) -> object:
    """The value of a JSON text. Raises HloError."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise HloError(f"{name} is no JSON: {error}", help=help) from None
    except RecursionError:
        raise HloError(f"{name}: the JSON is nested too deeply", help=help) from None


def is_time(value: object) -> TypeGuard[float]:
    """Whether a value is a number that may be a time."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST
