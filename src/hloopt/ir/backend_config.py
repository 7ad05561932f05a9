"""The backend_config of instructions: what a backend of XLA wrote, JSON in most modules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from hloopt.ir.attribute_values.strings import parse_string_or_dictionary
from hloopt.ir.instruction import Instruction


def backend_config(instruction: Instruction) -> Mapping[str, Any]:
    """The configuration as XLA:GPU writes it; empty where it is none, or no JSON object."""
    text = instruction.attributes.get("backend_config")
    return {} if text is None else _parse(text)


def is_sync(instruction: Instruction) -> bool:
    """Whether a collective start is marked as one that waits until it is done."""
    text = instruction.attributes.get("backend_config")
    if text is None or "is_sync" not in text:
        return False
    collective = _parse(text).get("collective_backend_config", {})
    return isinstance(collective, dict) and collective.get("is_sync") is True


def with_is_sync(instruction: Instruction) -> str:
    """The text of its backend_config with `is_sync` set, all other fields as they are."""
    config = dict(backend_config(instruction))
    collective = config.get("collective_backend_config")
    fields = dict(collective) if isinstance(collective, dict) else {}
    config["collective_backend_config"] = {**fields, "is_sync": True}
    return json.dumps(config, separators=(",", ":"))


@lru_cache(1 << 10)
def _parse(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(parse_string_or_dictionary(text))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
