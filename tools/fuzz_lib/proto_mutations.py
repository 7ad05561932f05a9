"""Protos with broken fields: the message of a module is decoded, mutated and encoded again."""

from __future__ import annotations

import random
from typing import Any

NUMBERS = (0, 1, -1, 2, 3, 7, 64, 1000, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, -(2**63))
STRINGS = ("", "x", "é", "a\nb", "\x1b[31m", "%x", "a b", "[bold]", "}", "a.1", "\u202e", "0" * 300)


def mutated_proto(dice: random.Random, data: bytes) -> bytes:
    """A serialized HloModuleProto after one to some five mutations."""
    from hloopt.proto.schema import message

    proto = message("HloModuleProto").FromString(data)
    for _ in range(1 + min(4, int(dice.expovariate(0.8)))):
        _mutate(dice, _chosen(dice, proto))
    serialized: bytes = proto.SerializeToString(deterministic=True)
    if dice.random() < 0.05:
        at = dice.randrange(len(serialized) + 1)
        serialized = serialized[:at] + bytes([dice.randrange(256)]) + serialized[at + 1 :]
    return serialized


def _chosen(dice: random.Random, proto: Any) -> Any:
    """A message inside of `proto`, all levels alike."""
    while True:
        inner = [
            value
            for field, values in proto.ListFields()
            if field.message_type is not None and not _is_map(field)
            for value in (values if _is_repeated(field) else [values])
        ]
        if not inner or dice.random() < 0.25:
            return proto
        proto = dice.choice(inner)


def _mutate(dice: random.Random, proto: Any) -> None:
    """Change, drop, double or exchange what one field holds; an empty one may get a value."""
    present = [field for field, _ in proto.ListFields() if not _is_map(field)]
    fields = present if present and dice.random() < 0.75 else proto.DESCRIPTOR.fields
    fields = [field for field in fields if not _is_map(field)]
    if not fields:
        return
    field = dice.choice(fields)
    if _is_repeated(field):
        _mutate_repeated(dice, proto, field)
    elif dice.random() < 0.2:
        proto.ClearField(field.name)
    elif field.message_type is not None:
        getattr(proto, field.name).SetInParent()
    else:
        _assign(dice, field, lambda value: setattr(proto, field.name, value))


def _mutate_repeated(dice: random.Random, proto: Any, field: Any) -> None:
    values = getattr(proto, field.name)
    match dice.randrange(4) if len(values) else 3:
        case 0:
            del values[dice.randrange(len(values))]
        case 1:
            value = values[dice.randrange(len(values))]
            values.add().CopyFrom(value) if field.message_type is not None else values.append(value)
        case 2 if field.message_type is None:
            at = dice.randrange(len(values))
            _assign(dice, field, lambda value: values.__setitem__(at, value))
        case 2:
            items = list(values)
            dice.shuffle(items)
            copies = [type(item).FromString(item.SerializeToString()) for item in items]
            del values[:]
            values.extend(copies)
        case _ if field.message_type is not None:
            values.add()
        case _:
            _assign(dice, field, values.append)


def _assign(dice: random.Random, field: Any, give: Any) -> None:
    """A value of the field's type, odd more often than not; nothing where it does not fit."""
    kinds = field.CPPTYPE_STRING, field.CPPTYPE_BOOL, field.CPPTYPE_FLOAT, field.CPPTYPE_DOUBLE
    value: object
    if field.cpp_type == kinds[0]:
        text = dice.choice(STRINGS)
        value = text.encode() if field.type == field.TYPE_BYTES else text
    elif field.cpp_type == kinds[1]:
        value = dice.random() < 0.5
    elif field.cpp_type in kinds[2:]:
        value = dice.choice((0.0, -1.0, 1e30, float("nan"), float("inf")))
    else:
        value = dice.choice(NUMBERS) if dice.random() < 0.6 else dice.randrange(40)
    try:
        give(value)
    except (ValueError, TypeError):
        return


def _is_repeated(field: Any) -> bool:
    return bool(field.is_repeated)


def _is_map(field: Any) -> bool:
    kind = field.message_type
    return kind is not None and bool(kind.GetOptions().map_entry)
