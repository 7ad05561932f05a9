"""`metadata={…}`: where in the user's program an instruction comes from."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields

from hloopt.diagnostics import HloSyntaxError, did_you_mean
from hloopt.ir.attributes.text import STRING
from hloopt.ir.attributes.values.numbers import format_ints, parse_int, parse_ints
from hloopt.ir.attributes.values.strings import escape_string, parse_string
from hloopt.ir.attributes.values.tokens import malformed, memoized
from hloopt.ir.trivia import skip_trivia
from hloopt.patterns import pattern


@dataclass(frozen=True, slots=True)
class OpMetadata:
    """The origin of an instruction; the fields are in the order of printing.

    `stack_frame_id` counts from 1 in the module's table of frames; 0 is none.
    """

    op_type: str = ""
    op_name: str = ""
    source_file: str = ""
    source_line: int = 0
    source_end_line: int = 0
    source_column: int = 0
    source_end_column: int = 0
    profile_type: tuple[int, ...] = ()
    deduplicated_name: str = ""
    scheduling_name: str = ""
    stack_frame_id: int = 0
    metadata_payload: str = ""


_UNSET = OpMetadata()
_DEFAULTS: dict[str, str | int | tuple[int, ...]] = {
    field.name: getattr(_UNSET, field.name) for field in fields(OpMetadata)
}
_KEPT_FOR = (
    *("op_type", "op_name", "source_file", "scheduling_name"),
    *("stack_frame_id", "metadata_payload"),
)
_KEY = pattern(r"([A-Za-z_][\w.\-]*)=", re.A)
_VALUE = pattern(rf"{STRING}|-?\d+|\{{[^{{}}]*\}}", re.S)


@memoized
def parse_metadata(text: str) -> OpMetadata:
    """`{op_name="jit(f)/add" source_file="f.py" source_line=3}`; commas may stand for blanks."""
    if not (text.startswith("{") and text.endswith("}")):
        raise malformed("metadata {key=value …}", text)
    found: dict[str, str | int | tuple[int, ...]] = {}
    end = len(text) - 1
    position = skip_trivia(text, 1)
    while position < end:
        if found and text[position] == ",":
            position = skip_trivia(text, position + 1)
        key = _KEY.match(text, position)
        if key is None:
            raise malformed("metadata {key=value …}", text)
        name = key[1]
        if name in found:
            raise HloSyntaxError(f"metadata has '{name}' twice")
        value = _VALUE.match(text, skip_trivia(text, key.end()))
        if value is None:
            raise HloSyntaxError(f"metadata has no value for '{name}'")
        found[name] = _parse_field(name, value[0])
        position = skip_trivia(text, value.end())
    return OpMetadata(**found)  # type: ignore[arg-type]  # _parse_field gives each its type


def _parse_field(name: str, value: str) -> str | int | tuple[int, ...]:
    default = _DEFAULTS.get(name)
    if isinstance(default, str):
        return parse_string(value)
    if isinstance(default, int):
        number = parse_int(value)
        if not -(1 << 31) <= number < 1 << 31:
            raise HloSyntaxError(f"{name}={value} does not fit into 32 bits")
        return number
    if default is None:
        raise HloSyntaxError(f"metadata has no '{name}'", help=did_you_mean(name, _DEFAULTS))
    return parse_ints(value)


def format_metadata(metadata: OpMetadata) -> str | None:
    """The metadata as XLA prints it, or None where nothing XLA finds worth printing is set."""
    if not any(getattr(metadata, name) for name in _KEPT_FOR):
        return None
    return f"{{{' '.join(_format_fields(metadata))}}}"


def _format_fields(metadata: OpMetadata) -> list[str]:
    parts: list[str] = []
    for name in _DEFAULTS:
        value = getattr(metadata, name)
        if not value:
            continue
        if isinstance(value, tuple):
            value = format_ints(value)
        elif isinstance(value, str):
            # XLA does not escape this one
            value = f'"{value if name == "scheduling_name" else escape_string(value)}"'
        parts.append(f"{name}={value}")
    return parts


def format_sharding_metadata(metadata: OpMetadata) -> str:
    """The metadata inside a sharding, printed whatever is set."""
    return f"{{{' '.join(_format_fields(metadata))}}}"


def _ordered(parts: list[tuple[str, str]]) -> str:
    return "".join(rf"(?:{name}={value}(?: (?=[a-z])|(?=\}})))?" for name, value in parts)


_PLAIN = r'"(?!")[ !#-&(-\[\]-~]*(?:\\[nrt"\'\\][ !#-&(-\[\]-~]*)*"'
_NUMBER = r"[1-9]\d{0,8}"
_IS_CANONICAL = pattern(
    r"\{(?=(?:op_type|op_name|source_file|stack_frame_id)=)"
    + _ordered(
        [("op_type", _PLAIN), ("op_name", _PLAIN), ("source_file", _PLAIN)]
        + [
            (name, _NUMBER)
            for name in ("source_line", "source_end_line", "source_column", "source_end_column")
        ]
        + [("deduplicated_name", _PLAIN), ("scheduling_name", _PLAIN), ("stack_frame_id", _NUMBER)]
    )
    + r"\}"
)


def canonical_metadata(text: str) -> str | None:
    """`text` as XLA prints it, or None where XLA leaves it out. Nothing is remembered.

    One match of a regular expression for text that is what XLA printed.
    """
    if _IS_CANONICAL.fullmatch(text):
        return text
    return format_metadata(parse_metadata(text))
