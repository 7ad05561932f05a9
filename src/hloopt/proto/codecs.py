"""Kinds of attribute values: how each is read from a field of a message and written to it."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, NamedTuple

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.values import (
    format_ints,
    parse_bool,
    parse_int,
    parse_ints,
    parse_string,
    quote_string,
)
from hloopt.ir.attributes.values.tokens import compact
from hloopt.proto.schema import enum_names, enum_numbers

Read = Callable[[Any], str | None]
Write = Callable[[Any, str], None]


class Codec(NamedTuple):
    """`read` gives the text of an attribute, None where the message has none; `write` sets it."""

    read: Read
    write: Write


def _parent(path: str) -> tuple[Callable[[Any], Any], str]:
    """A function that finds the message with the last field of a dotted path, and that field."""
    parents, _, field = path.rpartition(".")
    return (attrgetter(parents) if parents else lambda proto: proto), field


def integer(path: str) -> Codec:
    parent, field = _parent(path)
    return Codec(
        lambda proto: str(getattr(parent(proto), field)),
        lambda proto, text: setattr(parent(proto), field, parse_int(text)),
    )


def integer_unless_zero(field: str) -> Codec:
    return Codec(
        lambda proto: str(number) if (number := getattr(proto, field)) else None,
        lambda proto, text: setattr(proto, field, parse_int(text)),
    )


def optional_integer(field: str) -> Codec:
    return Codec(
        lambda proto: str(getattr(proto, field)) if proto.HasField(field) else None,
        lambda proto, text: setattr(proto, field, parse_int(text)),
    )


def integers(path: str) -> Codec:
    parent, field = _parent(path)

    def write(proto: Any, text: str) -> None:
        message = parent(proto)
        if message is not proto:
            message.SetInParent()
        getattr(message, field).extend(parse_ints(text))

    return Codec(lambda proto: format_ints(getattr(parent(proto), field)), write)


def some_integers(field: str) -> Codec:
    """A list that the text leaves out when it is empty."""
    found = integers(field)
    return Codec(lambda proto: found.read(proto) if getattr(proto, field) else None, found.write)


def first_integer(field: str) -> Codec:
    """A number that is the only one of a repeated field."""
    return Codec(
        lambda proto: str(numbers[0]) if (numbers := getattr(proto, field)) else None,
        lambda proto, text: getattr(proto, field).append(parse_int(text)),
    )


def flag(path: str) -> Codec:
    parent, field = _parent(path)

    def write(proto: Any, text: str) -> None:
        message = parent(proto)
        if message is not proto:
            message.SetInParent()
        setattr(message, field, parse_bool(text))

    return Codec(lambda proto: str(getattr(parent(proto), field)).lower(), write)


def flag_if_true(field: str) -> Codec:
    return Codec(
        lambda proto: "true" if getattr(proto, field) else None,
        lambda proto, text: setattr(proto, field, parse_bool(text)),
    )


def word(field: str) -> Codec:
    """A word that is a string in the message, too."""
    return Codec(
        lambda proto: getattr(proto, field) or None,
        lambda proto, text: setattr(proto, field, compact(text)),
    )


def enum(path: str, kind: str, prefix: str = "", *, unset: int | None = None) -> Codec:
    """A value of an enum without `prefix`; nothing where the field has the value `unset`."""
    parent, field = _parent(path)

    def read(proto: Any) -> str | None:
        number = getattr(parent(proto), field)
        if number == unset:
            return None
        name = enum_names(kind).get(number)
        if name is None:
            raise HloSyntaxError(f"{path} has the unknown value {number}")
        return name.removeprefix(prefix)

    def write(proto: Any, text: str) -> None:
        name = prefix + compact(text).upper()
        number = enum_numbers(kind).get(name)
        if number is None:
            raise HloSyntaxError(f"{path} has no value {name}")
        setattr(parent(proto), field, number)

    return Codec(read, write)


def lower(codec: Codec) -> Codec:
    """The same word in small letters."""

    def read(proto: Any) -> str | None:
        text = codec.read(proto)
        return None if text is None else text.lower()

    return Codec(read, codec.write)


def string(field: str) -> Codec:
    return Codec(
        lambda proto: quote_string(getattr(proto, field)),
        lambda proto, text: setattr(proto, field, parse_string(text)),
    )


def some_string(field: str) -> Codec:
    """A string that the text leaves out when it is empty."""
    return Codec(
        lambda proto: quote_string(text) if (text := getattr(proto, field)) else None,
        lambda proto, text: setattr(proto, field, parse_string(text)),
    )


def some_bytes(field: str) -> Codec:
    return Codec(
        lambda proto: quote_string(decoded(data)) if (data := getattr(proto, field)) else None,
        lambda proto, text: setattr(proto, field, encoded(parse_string(text))),
    )


def decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
