"""Protos of HLO as text: `.pbtxt`, an HloProto or an HloModuleProto."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hloopt.diagnostics import HloError, HloSyntaxError, Source, Span
from hloopt.patterns import pattern
from hloopt.proto.decode import decode
from hloopt.proto.encode import encode_file
from hloopt.proto.schema import message

if TYPE_CHECKING:
    from google.protobuf.text_format import ParseError

    from hloopt.ir.module import Module

_WRAPPED = pattern(r"(?:\s|#[^\n]*\n)*hlo_module\s*:?\s*[{<]")


def decode_text(source: Source) -> Module:
    """The module in a proto that is written as text. Fields that are not known are passed over, as
    in binary ones. O(length of the text). Raises HloError."""
    proto = message("HloProto" if _WRAPPED.match(source.text) else "HloModuleProto")()
    from google.protobuf import text_format

    try:
        text_format.Parse(source.text, proto, allow_unknown_field=True)
    except text_format.ParseError as error:
        raise _unreadable(source, error) from None
    except RecursionError:
        raise HloSyntaxError("the proto is nested too deeply", code="HLO012").in_file(
            source.name
        ) from None
    return decode(proto.SerializeToString(), source.name)


def _unreadable(source: Source, error: ParseError) -> HloError:
    """The error with its place: protobuf's message has that, and the line, before the reason."""
    lines = source.text.split("\n")
    number, column = error.GetLine() or 1, error.GetColumn() or 1
    reason = str(error).removeprefix(f"{number}:{column} : ")
    reason = reason.removeprefix(f"'{lines[number - 1]}': ").rstrip(".")
    start = sum(len(line) + 1 for line in lines[: number - 1]) + column - 1
    found = HloSyntaxError(f"no HLO proto in text: {reason}", code="HLO012")
    return found.at(Span.in_line(source, start, start + 1))


def encode_text(module: Module) -> str:
    """The module as an HloProto in text, as XLA writes it. Raises HloError."""
    proto = message("HloProto")()
    from google.protobuf import text_format

    proto.ParseFromString(encode_file(module))
    _set_present(proto.hlo_module, _WRITTEN_OF_MODULE)
    for computation in proto.hlo_module.computations:
        for instruction in computation.instructions:
            _set_present(instruction, _WRITTEN_OF_INSTRUCTION)
    return str(text_format.MessageToString(proto))


def _set_present(proto: Any, names: tuple[str, ...]) -> None:
    for name in names:
        getattr(proto, name).SetInParent()


# XLA writes these even if they are empty.
_WRITTEN_OF_MODULE = (
    "host_program_shape",
    "input_output_alias",
    "buffer_donor",
    "frontend_attributes",
)
_WRITTEN_OF_INSTRUCTION = ("metadata", "frontend_attributes", "statistics_viz")
