"""Values of declared types as plain data for JSON, and back.

For dataclasses, named tuples, enums, tuples, lists, dicts with texts as keys, unions with None, and
what JSON has.
"""

from __future__ import annotations

import types
import typing
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any


def to_plain(value: Any) -> Any:
    """`value` as plain data."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {each.name: to_plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, dict):
        return {key: to_plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(each) for each in value]
    return value


def from_plain(kind: Any, data: Any) -> Any:
    """The value of type `kind` that became `data`. Raises ValueError, TypeError or KeyError."""
    origin = typing.get_origin(kind)
    arguments = typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        (inner,) = (each for each in arguments if each is not type(None))
        return None if data is None else from_plain(inner, data)
    if origin is tuple:
        return _tuple(arguments, data)
    if origin is list:
        return [from_plain(arguments[0], each) for each in data]
    if origin is dict:
        return {key: from_plain(arguments[1], each) for key, each in data.items()}
    if isinstance(kind, type) and issubclass(kind, Enum):
        return kind(data)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{each.name: from_plain(hints[each.name], data[each.name])
                       for each in fields(kind)})  # fmt: skip
    if isinstance(kind, type) and issubclass(kind, tuple):
        hints = _hints(kind)
        return kind(*map(from_plain, hints.values(), data))
    return data


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _tuple(arguments: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(from_plain(arguments[0], each) for each in data)
    if len(arguments) != len(data):
        raise ValueError(f"a tuple of {len(arguments)}, found one of {len(data)}")
    return tuple(map(from_plain, arguments, data))
