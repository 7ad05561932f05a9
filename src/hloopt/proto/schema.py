"""The messages and enums of `hlo.proto` as classes, made when they are first asked for."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

from hloopt.diagnostics import HloError
from hloopt.patterns import pattern

_LINE = pattern(
    r"(?P<open>message|enum|oneof) (?P<block>\w+) \{"
    r"|map<(?P<key>\w+), (?P<entry>[\w.]+)> (?P<map>\w+) = (?P<tag>\d+);"
    r"|(?P<repeated>repeated )?(?P<type>[\w.]+) (?P<field>\w+) = (?P<number>\d+);"
    r"|(?P<value>\w+) = (?P<code>\d+);"
    r"|(?P<close>\})"
)


def message(name: str) -> Any:
    """The class of a message. Raises HloError where protobuf is not installed."""
    pool = _pool()
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"xla.{name}"))


@cache
def enum_names(name: str) -> dict[int, str]:
    """The names of an enum's values by number."""
    values = _pool().FindEnumTypeByName(f"xla.{name}").values
    return {value.number: value.name for value in values}


@cache
def enum_numbers(name: str) -> dict[str, int]:
    """The numbers of an enum's values by name."""
    return {text: number for number, text in enum_names(name).items()}


@cache
def _pool() -> Any:
    try:
        from google.protobuf import descriptor_pool
    except ImportError:
        raise HloError(
            "reading and writing .pb files needs protobuf",
            help="pip install 'hloopt[proto]'",
            code="HLO011",
        ) from None
    pool = descriptor_pool.DescriptorPool()
    pool.Add(_file(files(__package__).joinpath("hlo.proto").read_text("utf-8")))
    return pool


def _file(text: str) -> Any:
    """A FileDescriptorProto for `text`, which has one declaration in each line."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto

    file = FileDescriptorProto(name="hlo.proto", package="xla", syntax="proto3")
    scopes: list[Any] = [file]  # what encloses the line; a number stands for a oneof
    for line in text.partition("package xla;")[2].splitlines():
        declaration = _LINE.fullmatch(line.strip())
        if declaration is None:
            assert not line or line.startswith("//"), f"hlo.proto: {line}"
            continue
        found = declaration.groupdict()
        scope = scopes[-1] if not isinstance(scopes[-1], int) else scopes[-2]
        if found["close"]:
            scopes.pop()
        elif found["open"] == "oneof":
            scopes.append(len(scope.oneof_decl))
            scope.oneof_decl.add(name=found["block"])
        elif found["open"] == "enum":
            scopes.append(scope.enum_type.add(name=found["block"]))
        elif found["open"]:
            inner = scope.message_type if scope is file else scope.nested_type
            scopes.append(inner.add(name=found["block"]))
        elif found["value"]:
            scope.value.add(name=found["value"], number=int(found["code"]))
        elif found["map"]:
            _add_map(scope, found)
        else:
            field = scope.field.add(name=found["field"], number=int(found["number"]))
            _set_type(field, found["type"])
            if found["repeated"]:
                field.label = FieldDescriptorProto.LABEL_REPEATED
            if isinstance(scopes[-1], int):
                field.oneof_index = scopes[-1]
    return file


def _add_map(scope: Any, found: dict[str, str]) -> None:
    """A map is a repeated message of key and value."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    name = "".join(word.capitalize() for word in found["map"].split("_")) + "Entry"
    entry = scope.nested_type.add(name=name)
    entry.options.map_entry = True
    for number, (part, kind) in enumerate((("key", found["key"]), ("value", found["entry"])), 1):
        _set_type(entry.field.add(name=part, number=number), kind)
    scope.field.add(
        name=found["map"],
        number=int(found["tag"]),
        label=FieldDescriptorProto.LABEL_REPEATED,
        type=FieldDescriptorProto.TYPE_MESSAGE,
        type_name=name,
    )


def _set_type(field: Any, name: str) -> None:
    """A built-in type by its number; a message or enum by its name, found in the pool later."""
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto

    number = FieldDescriptorProto.Type.DESCRIPTOR.values_by_name.get(f"TYPE_{name.upper()}")
    if number is not None and name.islower():
        field.type = number.number
    else:
        field.type_name = name
