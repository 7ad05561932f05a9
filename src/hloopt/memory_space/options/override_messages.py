"""The messages that state overrides, checked: as data, or as protocol buffers in text form."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from hloopt.analysis.dataflow.slots import Index
from hloopt.analysis.latency.text_proto import Fields, parse_text_proto
from hloopt.diagnostics import HloError, PassRefused, did_you_mean

Reader = Callable[[str, object], Any]
"""The value of a field from what is given for it: data, or the text of a token."""


def _integer(where: str, given: object) -> int:
    if isinstance(given, str) and re.fullmatch(r"-?\d+", given):
        return int(given)
    if isinstance(given, int) and not isinstance(given, bool):
        return given
    raise PassRefused(f"{where} is {given!r}", help="it takes an integer")


def _number(where: str, given: object) -> float:
    try:
        if isinstance(given, str | int | float) and not isinstance(given, bool):
            return float(given)
    except ValueError:
        pass
    raise PassRefused(f"{where} is {given!r}", help="it takes a number")


def _truth(where: str, given: object) -> bool:
    if given in (True, False, "true", "false"):
        return given in (True, "true")
    raise PassRefused(f"{where} is {given!r}", help="it takes true or false")


def _expression(where: str, given: object) -> re.Pattern[str]:
    if not isinstance(given, str):
        raise PassRefused(f"{where} is {given!r}", help="it takes a regular expression")
    try:
        return re.compile(given, re.ASCII)
    except re.error as error:
        raise PassRefused(f"{where}: '{given}' is no regular expression: {error}") from None


def _shape_index(where: str, given: object) -> Index:
    """A shape index: its numbers, or the message that has them."""
    numbers = given.get("index", ()) if isinstance(given, Mapping) else given
    if not isinstance(numbers, list | tuple) or (
        isinstance(given, Mapping) and given.keys() - {"index"}
    ):
        raise PassRefused(f"{where} is {given!r}", help="it takes the numbers of a shape index")
    return tuple(_integer(where, number) for number in numbers)


def _message(fields: Mapping[str, Reader], *required: str, is_choice: bool = False) -> Reader:
    """The reader of a message with these fields; of a choice with exactly one of them.

    Of a field that stands several times in text form the last one counts.
    """

    def read(where: str, given: object) -> dict[str, Any]:
        if not isinstance(given, Mapping):
            raise PassRefused(f"{where} is {given!r}", help=f"it has fields: {', '.join(fields)}")
        for name in given:
            if name not in fields:
                hint = did_you_mean(str(name), fields) or f"fields: {', '.join(fields)}"
                raise PassRefused(f"{where} has no field '{name}'", help=hint)
        for name in required:
            if name not in given:
                raise PassRefused(f"{where} has no '{name}'", help="add it")
        if is_choice and len(given) != 1:
            raise PassRefused(f"{where} takes one field", help=f"give one of {', '.join(fields)}")
        return {
            name: fields[name](f"{where}.{name}", value[-1] if isinstance(given, Fields) else value)
            for name, value in given.items()
        }

    return read


_INSTRUCTION: dict[str, Reader] = {
    "instruction_name_regex": _expression,
    "instruction_regex": _expression,
}
_PART: dict[str, Reader] = {
    **_INSTRUCTION,
    "tuple_index": _shape_index,
    "size_gte": _integer,
    "size_lte": _integer,
}
_USE = _message({**_PART, "operand_number": _integer})

PREFETCH_OVERRIDE = _message(
    {
        "hlo_operand_filter": _USE,
        "override_options": _message(
            {
                "prefetch_eagerness": _number,
                "before_instruction": _message(
                    _INSTRUCTION,
                ),
                "after_instruction": _message(_INSTRUCTION),
            },
            is_choice=True,
        ),
    },
    "override_options",
)
SORT_ORDER_OVERRIDE = _message(
    {
        "hlo_position_matcher": _message({**_PART, "hlo_use_filter": _USE}),
        "override_options": _message(
            {"assign_first": _truth, "assign_last": _truth, "assign_priority": _integer},
            is_choice=True,
        ),
        "apply_to_cross_program_prefetches": _truth,
    },
    "override_options",
)


def read_overrides(
    option: str, given: str | Sequence[Mapping[str, object]], reader: Reader
) -> list[dict[str, Any]]:
    """The overrides of an option as checked data. Raises PassRefused for what makes no sense."""
    messages: Sequence[object]
    if isinstance(given, str):
        try:
            fields = parse_text_proto(given, option)
        except HloError as error:
            raise PassRefused(error.message, span=error.span, help=error.help) from error
        if unknown := fields.keys() - {"overrides"}:
            raise PassRefused(f"{option} has '{min(unknown)}'", help="it has overrides { … }")
        messages = fields.get("overrides", [])
    else:
        messages = given
    return [reader(f"{option}[{number}]", each) for number, each in enumerate(messages)]
