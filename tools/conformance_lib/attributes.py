"""Attributes as tables name them, and whether they have the values that tables expect."""

from __future__ import annotations

import ast
import re
from functools import cache
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.forms import Form, mapping, matching, unknown_words
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.opcode_attributes import allowed_attributes
from hloopt.ir.attributes.values import (
    OpMetadata,
    parse_frontend_attributes,
    parse_ints,
    parse_metadata,
    parse_replica_groups,
    parse_string,
)

_COMMA = re.compile(r",(?![^{}]*\})")
"""A comma that is not within braces."""


def read_attribute(instruction: Instruction, key: str) -> str | None:
    """The value of an attribute (`index`), a called computation (`to_apply`), or a part of a
    compound one (`metadata.op_name`, `frontend_attributes.x`); None where it is absent.

    Strings are without their quotes. A field of metadata is absent at its default.
    """
    name, dot, part = key.partition(".")
    text = instruction.attributes.get(name)
    if not dot:
        if text is None:
            return _called_name(instruction, key)
        return parse_string(text) if text.startswith('"') else text
    if name == "frontend_attributes":
        return parse_frontend_attributes(text).get(part) if text else None
    value = getattr(parse_metadata(text), part) if text else None
    return str(value) if value else None


def _called_name(instruction: Instruction, key: str) -> str | None:
    called = dict(instruction.called_attributes()).get(key)
    return ", ".join(computation.name for computation in called) if called else None


def _key_problem(key: str) -> str | None:
    """An objection to the name of an attribute: one that no opcode has would be absent always."""
    name, dot, part = key.partition(".")
    if reason := unknown_words("attribute", [name], _all_names()):
        return reason
    if not dot or name == "frontend_attributes":
        return None
    if name != "metadata":
        return f"unknown compound attribute '{key}'"
    fields = OpMetadata.__dataclass_fields__
    return unknown_words("field of metadata", [part], fields)


@cache
def _all_names() -> frozenset[str]:
    return frozenset(name for opcode in Opcode for name in allowed_attributes(opcode))


def _value_problem(value: object) -> str | None:
    if isinstance(value, str | int | list) or value in (None, {}):
        return None
    return f"comparing an attribute with {value!r} is not supported"


ATTRIBUTE = matching("the name of an attribute", _key_problem)
VALUE = Form(
    _value_problem, frozenset(("any", "nonempty", "absent or V", "in [..]", "not in [..]"))
)
ATTRIBUTES = mapping(ATTRIBUTE, VALUE)


def attribute_is(found: str | None, expected: Any) -> bool:
    """Whether an attribute's value is as a table says: `null`, "any", "nonempty", "absent or V",
    "in [..]", "not in [..]", or the value itself (where "" and "{}" also mean absent; false does,
    too). Lists are the members of replica groups, however these are written."""
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
    if expected in ("{}", {}):
        return found in (None, "", "{}")
    if not isinstance(expected, str):
        raise RecordError(f"comparing an attribute with {expected!r} is not supported")
    if expected == "any":
        return found is not None
    if expected == "nonempty":
        return found not in (None, "", "{}")
    if expected.startswith("absent or "):
        return found in (None, expected.removeprefix("absent or "))
    if expected.startswith("in [") and expected.endswith("]"):
        return found in [choice.strip() for choice in _COMMA.split(expected[4:-1])]
    if expected.startswith("not in ["):
        excluded = ast.literal_eval(expected.removeprefix("not in "))
        return found not in [str(value) for value in excluded]
    return (found or "") == expected
