"""The backend_config of instructions: what a backend of XLA wrote, JSON in most modules."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from hloopt.ir.attributes.values.strings import parse_string_or_dictionary
from hloopt.ir.instruction import Instruction
from hloopt.patterns import pattern

DYNAMIC_SLICE_CONFIG = "dynamic_slice_config"
"""The field that tells where a dynamic slice is in each trip of a loop."""


def backend_config(instruction: Instruction) -> Mapping[str, Any]:
    """The configuration as XLA:GPU writes it; empty where it is none, or no JSON object."""
    text = instruction.attributes.get("backend_config")
    return {} if text is None else _parse(text)


def is_sync(instruction: Instruction) -> bool:
    """Whether a collective start is marked as one that waits until it is done."""
    return _collective_flag(instruction, "is_sync")


def is_pipelined(instruction: Instruction) -> bool:
    """Whether a collective is marked as one that a collective pipeliner has moved."""
    return _collective_flag(instruction, "is_pipelined")


def _collective_flag(instruction: Instruction, name: str) -> bool:
    text = instruction.attribute("backend_config")
    if text is None or name not in text:
        return False
    collective = _parse(text).get("collective_backend_config", {})
    return isinstance(collective, dict) and collective.get(name) is True


def with_collective_flag(instruction: Instruction, name: str, *, value: bool = True) -> str:
    """The text of its backend_config with a flag of collectives set, other fields as they are.

    Fields that XLA:GPU writes into each such configuration are there with their defaults.
    """
    collective = backend_config(instruction).get("collective_backend_config")
    given = collective if isinstance(collective, dict) else {}
    return with_gpu_fields(
        instruction, collective_backend_config={**_COLLECTIVE, **given, name: value}
    )


def with_gpu_fields(instruction: Instruction, **values: object) -> str:
    """The text of its backend_config with `values`, and all that XLA:GPU writes into each one."""
    given = backend_config(instruction)
    config = {**_FIRST, **given, **values}
    for name, default in _LAST.items():
        config[name] = config.pop(name, default)
    return json.dumps(config, separators=(",", ":"))


def without_field(instruction: Instruction, name: str) -> str:
    """The text of its backend_config without a field."""
    kept = {field: value for field, value in backend_config(instruction).items() if field != name}
    return json.dumps(kept, separators=(",", ":"))


_FIRST: dict[str, object] = {"operation_queue_id": "0"}
_LAST: dict[str, object] = {
    "force_earliest_schedule": False,
    "reification_cost": [],
    "device_type": "DEVICE_TYPE_INVALID",
}
_COLLECTIVE: dict[str, object] = {
    "is_sync": False,
    "is_pipelined": False,
    "backend": "DEFAULT",
    "collectives_mode": "COLLECTIVES_MODE_INVALID",
    "kernel_strategy": "KERNEL_STRATEGY_DEFAULT",
}


@lru_cache(1 << 10)
def _parse(text: str) -> Mapping[str, Any]:
    written = parse_string_or_dictionary(text)
    try:
        try:
            value = json.loads(written)
        except ValueError:
            value = json.loads(_NAMES.sub(_quoted, written))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


_NAMES = pattern(r'"(?:[^"\\]|\\.)*"|([A-Za-z_]\w*)(?=\s*:)')
"""Strings, and names of fields without quotes, which XLA's reader takes as well."""


def _quoted(found: re.Match[str]) -> str:
    return f'"{found[1]}"' if found[1] else found[0]
