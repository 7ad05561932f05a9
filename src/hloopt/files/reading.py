"""Reading files of HLO: text or a proto, binary or in text, packed or not."""

from __future__ import annotations

import codecs
import sys

from hloopt.diagnostics import HloError, HloSyntaxError, Source
from hloopt.files.packing import suffix_for, unpack, unpacked_name
from hloopt.files.storage import open_binary
from hloopt.ir.module import Module
from hloopt.patterns import pattern
from hloopt.read_log import note_read

STANDARD_STREAM = "-"


def read_source(path: str) -> Source:
    """The text of a file (`-`: standard input), unpacked by its suffix. Raises HloError."""
    data, name = _read(path)
    if _is_proto(data, name) or _PROTO_TEXT.match(data):
        raise HloError(
            f"{name} is an HLO proto, where text is needed",
            help="a proto holds one module, and no command line",
            code="HLO012",
        )
    return Source(name, _decode(data, name))


def read_text_or_module(path: str) -> Source | Module:
    """The text of a file (`-`: standard input), or the module of a proto. Raises HloError."""
    data, name = _read(path)
    return _proto_in(data, name) or Source(name, _decode(data, name))


def read_module(path: str) -> Module:
    """The module in a file of text or a proto (`-`: standard input), not verified.

    A proto is known by its suffix `.pb`, or by its beginning. Raises HloError.
    """
    data, name = _read(path)
    if (module := _proto_in(data, name)) is not None:
        return module
    from hloopt.text import parse_module

    return parse_module(Source(name, _decode(data, name)))


def read_proto(path: str) -> Module:
    """The module in a file that is a binary proto, whatever its name is. Raises HloError."""
    return _decoded(*_read(path))


def read_proto_text(path: str) -> Module:
    """The module in a file that is a proto in text, whatever its name is. Raises HloError."""
    return _decoded_text(*_read(path))


def _proto_in(data: bytes, name: str) -> Module | None:
    """The module of a proto; None for other data. Raises HloError."""
    if _is_proto(data, name):
        return _decoded(data, name)
    return _decoded_text(data, name) if _PROTO_TEXT.match(data) else None


def _decoded(data: bytes, name: str) -> Module:
    from hloopt.proto import decode

    try:
        return decode(data, name)
    except HloSyntaxError as error:
        from hloopt.text.foreign import recognized_data

        raise recognized_data(name, data) or error from None


def _decoded_text(data: bytes, name: str) -> Module:
    from hloopt.proto import decode_text

    return decode_text(Source(name, _decode(data, name)))


def _read(path: str) -> tuple[bytes, str]:
    """The unpacked bytes of a file, and what to call it."""
    if path == STANDARD_STREAM:
        if sys.stdin is None:
            raise HloError("cannot read <stdin>: it is closed", code="HLO001")
        data = sys.stdin.buffer.read()
        note_read("<stdin>", data)
        return data, "<stdin>"
    try:
        with open_binary(path) as file:
            data = file.read()
    except OSError as error:
        raise HloError(f"cannot read {path}: {error.strerror or error}", code="HLO001") from None
    note_read(path, data)
    return unpack(data, path), path


def begins_as_module(path: str) -> bool:
    """Whether a file holds a text that begins as HLO does; the log of reads does not note it.

    Raises HloError.
    """
    try:
        with open_binary(path) as file:
            data = file.read()
    except OSError as error:
        raise HloError(f"cannot read {path}: {error.strerror or error}", code="HLO001") from None
    return _decode(unpack(data, path), path).lstrip().startswith("HloModule")


def has_proto_suffix(path: str) -> bool:
    """Whether a file of this name holds a binary HLO proto, possibly packed."""
    return unpacked_name(path).endswith(".pb")


def has_proto_text_suffix(path: str) -> bool:
    """Whether a file of this name is to hold a proto in text, possibly packed.

    Others have this suffix, too: what is read is known by its beginning.
    """
    return unpacked_name(path).endswith(".pbtxt")


_PROTO_TEXT = pattern(
    rb"(?:\xef\xbb\xbf)?(?:\s|#[^\n]*\n)*"
    rb"(?:(?:hlo_module|host_program_shape)\s*:?\s*[{<]"
    rb"|(?:name:\s*\"[^\"]*\"\s*)?entry_computation_name:)"
)
"""The beginnings of an HloProto and an HloModuleProto in text, which no text of HLO has."""
_CONTROL_CHARACTERS = bytes(set(range(32)) - set(b"\t\n\v\f\r"))
_LOOKED_AT = 256


def _is_proto(data: bytes, name: str) -> bool:
    """By the suffix, or by a first field of bytes with control characters near it.

    Text can begin so, too: where all of it is UTF-8, it must consist of fields. O(length).
    """
    if has_proto_suffix(name):
        return True
    start = data[:_LOOKED_AT]
    if start[:1] != b"\n" or len(start.translate(None, _CONTROL_CHARACTERS)) == len(start):
        return False
    from hloopt.proto.damage import consists_of_fields

    return not _is_utf8(data) or consists_of_fields(data)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _decode(data: bytes, name: str) -> str:
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError as error:
        from hloopt.text.foreign import recognized_data

        if known := recognized_data(name, data):
            raise known from None
        if suffix := suffix_for(data):
            raise HloError(
                f"{name} is packed, and its name does not say so",
                help=f"let it end in {suffix}",
                code="HLO003",
            ) from None
        line = data.count(b"\n", 0, error.start) + 1
        is_utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        raise HloError(
            f"{name}:{line}: byte {data[error.start]:#04x} at offset {error.start} is not UTF-8",
            help="this looks like UTF-16: convert it, `iconv -f UTF-16 -t UTF-8`"
            if is_utf16
            else "is this a text file? HLO text is UTF-8",
            code="HLO002",
        ) from None


def load(path: str, *, verify: bool = True) -> Module:
    """The module in a file. Raises HloError for what cannot be read, is no HLO or is invalid."""
    from hloopt.verifier import ANY_TARGET, verify_module

    module = read_module(path)
    if verify and (errors := verify_module(module, ANY_TARGET)):
        raise errors[0]
    return module
