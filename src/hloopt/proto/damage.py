"""Damage in files that cannot be decoded: its byte and field, which protobuf's runtime does not
tell."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hloopt.diagnostics import HloError, HloSyntaxError
from hloopt.proto.schema import message

_FIXED = {1: 8, 5: 4}  # bytes of the wire types of fixed length
_VARINT, _BYTES = 0, 2
_LONGEST_VARINT = 10
_DEEPEST = 100  # messages inside each other


class _Damage(Exception):
    """The error, with its byte and field."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(what)
        self.offset = offset
        self.path: list[str] = []  # innermost first


def explain(data: bytes, name: str) -> HloError:
    """The error for `data` that cannot be decoded. O(length of the data)."""
    hint = "expected an HloProto, as --xla_dump_hlo_as_proto writes it, or an HloModuleProto"
    kind = "HloProto" if _is_wrapped(data) else "HloModuleProto"
    try:
        _check(data, 0, len(data), message(kind).DESCRIPTOR, 0)
    except _Damage as damage:
        where = f", in {'.'.join(reversed(damage.path))}" if damage.path else ""
        return HloSyntaxError(
            f"{name}: this is no HLO proto: {damage} at byte {damage.offset}{where}",
            help=hint,
            code="HLO012",
        )
    return HloSyntaxError(f"{name}: this is no HLO proto", help=hint, code="HLO012")


def consists_of_fields(data: bytes) -> bool:
    """Whether `data` are fields of some message, one behind the other. O(fields)."""
    position = 0
    try:
        while position < len(data):
            tag, position = _varint(data, position, len(data))
            position = _check_field(data, position, len(data), None, tag & 7, 0)
    except _Damage:
        return False
    return True


def _is_wrapped(data: bytes) -> bool:
    """Whether the first field begins as a message does, not as the name of a module."""
    try:
        _, start = _varint(data, 1, len(data))
    except _Damage:
        return False
    return data[0] == 0x0A and start < len(data) and data[start] < 0x20


def _check(data: bytes, position: int, end: int, descriptor: Any, depth: int) -> None:
    """Raise _Damage where the bytes from `position` to `end` are no message of this kind."""
    if depth > _DEEPEST:
        raise _Damage(position, "messages are nested too deeply")
    counts: Counter[int] = Counter()
    while position < end:
        start = position
        tag, position = _varint(data, position, end)
        number, wire_type = tag >> 3, tag & 7
        field = descriptor.fields_by_number.get(number)
        try:
            if not number:
                raise _Damage(start, "a field without a number")
            position = _check_field(data, position, end, field, wire_type, depth)
        except _Damage as damage:
            if field is not None:
                index = f"[{counts[number]}]" if field.default_value == [] else ""
                damage.path.append(f"{field.name}{index}")
            raise
        counts[number] += 1


def _check_field(
    data: bytes, position: int, end: int, field: Any, wire_type: int, depth: int
) -> int:
    """The end of the value at `position`; `field` is None for one that is not in the schema."""
    if wire_type == _VARINT:
        return _varint(data, position, end)[1]
    if wire_type == _BYTES:
        length, content = _varint(data, position, end)
        if field is not None and content + length <= end:
            _check_content(data, content, content + length, field, depth)
    elif wire_type in _FIXED:
        length, content = _FIXED[wire_type], position
    else:
        raise _Damage(position, f"a field of the unknown wire type {wire_type}")
    if content + length > end:
        raise _Damage(position, f"a field of {length} bytes, {content + length - end} are missing,")
    return content + length


def _check_content(data: bytes, start: int, end: int, field: Any, depth: int) -> None:
    if field.message_type is not None:
        _check(data, start, end, field.message_type, depth + 1)
    elif field.type == field.TYPE_STRING:
        try:
            data[start:end].decode("utf-8")
        except UnicodeDecodeError as error:
            raise _Damage(start + error.start, "text that is not UTF-8") from None


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    value = 0
    for place in range(_LONGEST_VARINT):
        if position + place >= end:
            raise _Damage(position, "a number that is cut short")
        byte = data[position + place]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            return value, position + place + 1
    raise _Damage(position, "a number of more than 64 bits")
