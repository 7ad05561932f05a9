"""Options of passes as Python declares them: fields with a default and a line of help."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class PassOptions:
    """Base of the options of a pass: a dataclass whose fields are made by `option`."""


def option(default: _Value, doc: str) -> _Value:
    """A field of a pass's options: its default, and one line for help, docs and schema."""
    return field(default=default, metadata={"doc": doc})


class Seconds(float):
    """A time as an option's value: `30s`, `2min`, or a number of seconds."""

    def __str__(self) -> str:
        return f"{float(self):g}s"


class Share(float):
    """A part of a whole as an option's value: `5%`, or a number from 0 to 1."""

    def __str__(self) -> str:
        return f"{100 * float(self):g}%"


Bytes: TypeAlias = Annotated[int, "bytes, such as 80GiB"]
"""A size as an option's value; the annotation is what people are told of its type."""


def option_types(options: type[PassOptions]) -> dict[str, Any]:
    """The type of each option, with its annotations for people."""
    found = _TYPES.get(options)
    if found is None:
        found = _TYPES[options] = get_type_hints(options, include_extras=True)
    return found


_TYPES: dict[type[PassOptions], dict[str, Any]] = {}


def alternatives(kind: Any) -> tuple[Any, ...]:
    """The members of a union, or the type alone."""
    if get_origin(kind) in (Union, types.UnionType):
        return get_args(kind)
    return (kind,)


def check_types(options: PassOptions, owner: str) -> None:
    """Raise TypeError for a value of another type than its option has.

    Python code may give any; `owner` is the name of the pass in the message. Defaults are not
    looked at: a type checker has seen them.
    """
    for declared in fields(options):
        value = getattr(options, declared.name)
        if value is declared.default:
            continue
        if not _is_of(option_types(type(options))[declared.name], value):
            raise TypeError(
                f"option '{declared.name}' of {owner} takes {declared.type}, not {value!r}, "
                f"which is of type {type(value).__name__}"
            )


def _is_of(kind: Any, value: object) -> bool:
    return any(_is_one_of(choice, value) for choice in alternatives(kind))


def _is_one_of(kind: Any, value: object) -> bool:
    """Whether a value is of a type that is not a union; an integer does for a float."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _is_of(arguments[0], value)
    if origin is Literal:
        return value in arguments
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_of(arguments[0], item) for item in value)
    if origin is Mapping:
        return isinstance(value, Mapping) and all(
            _is_of(arguments[0], key) and _is_of(arguments[1], item) for key, item in value.items()
        )
    if origin is Callable:
        return callable(value)
    if kind in (int, float, Seconds, Share) and isinstance(value, bool):
        return False
    return isinstance(value, int | float if kind in (float, Seconds, Share) else kind)
