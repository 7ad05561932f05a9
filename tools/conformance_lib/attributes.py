"""Attributes as tables name them, and whether they have the values that tables expect."""

from __future__ import annotations

import ast
from typing import Any

from conformance_lib.errors import RecordError
from hloopt.ir import Instruction
from hloopt.ir.attributes.values import (
    OpMetadata,
    parse_frontend_attributes,
    parse_ints,
    parse_metadata,
    parse_replica_groups,
    parse_string,
)


def read_attribute(instruction: Instruction, key: str) -> str | None:
    """The value of an attribute (`index`), a called computation (`to_apply`), or a part of a
    compound one (`metadata.op_name`, `frontend_attributes.x`); None where it is absent.

    Strings are without their quotes. A field of metadata is absent at its default. Raises
    RecordError for a compound attribute or a field this function does not know.
    """
    name, dot, part = key.partition(".")
    text = instruction.attributes.get(name)
    if not dot:
        if text is None:
            return _called_name(instruction, key)
        return parse_string(text) if text.startswith('"') else text
    if name == "frontend_attributes":
        return parse_frontend_attributes(text).get(part) if text else None
    if name != "metadata":
        raise RecordError(f"unknown compound attribute '{key}'")
    if part not in OpMetadata.__dataclass_fields__:
        raise RecordError(f"unknown field of metadata '{part}'")
    value = getattr(parse_metadata(text), part) if text else None
    return str(value) if value else None


def _called_name(instruction: Instruction, key: str) -> str | None:
    called = dict(instruction.called_attributes()).get(key)
    return ", ".join(computation.name for computation in called) if called else None


def attribute_is(found: str | None, expected: Any) -> bool:
    """Whether an attribute's value is as a table says: `null`, "any", "nonempty", "absent or V",
    "not in [..]", or the value itself (where "" also means absent; false does, too). Lists are
    the members of replica groups, however these are written."""
    if expected is None:
        return found is None
    if isinstance(expected, bool):
        return (found or "false") == ("true" if expected else "false")
    if isinstance(expected, int):
        return found == str(expected)
    if isinstance(expected, list) and all(isinstance(group, list) for group in expected):
        groups = parse_replica_groups(found or "{}").lists()
        return [list(group) for group in groups] == expected
    if isinstance(expected, list):
        return found is not None and list(parse_ints(found)) == expected
    if not isinstance(expected, str):
        raise RecordError(f"comparing an attribute with {expected!r} is not supported")
    if expected == "any":
        return found is not None
    if expected == "nonempty":
        return found not in (None, "", "{}")
    if expected.startswith("absent or "):
        return found in (None, expected.removeprefix("absent or "))
    if expected.startswith("not in ["):
        excluded = ast.literal_eval(expected.removeprefix("not in "))
        return found not in [str(value) for value in excluded]
    return (found or "") == expected
