"""The buffers that outputs share with parameters or operands."""

from __future__ import annotations

import re
from typing import NamedTuple

from hloopt.ir.attributes.values.numbers import parse_int, split_ints
from hloopt.ir.attributes.values.tokens import compact, malformed, memoized
from hloopt.patterns import pattern


class Alias(NamedTuple):
    """Output `output_index` shares its buffer with a parameter or, in an instruction, an operand.

    `kind` is `may-alias` or `must-alias`; always `must-alias` between an instruction's output and
    operand.
    """

    output_index: tuple[int, ...]
    parameter: int
    parameter_index: tuple[int, ...]
    kind: str = "may-alias"


_INDEX = r"\{((?:\d+(?:,\d+)*)?)\}"
_DONOR = pattern(rf"\((\d+),{_INDEX}\)")
_ALIAS = pattern(rf"{_INDEX}:\((\d+),{_INDEX}(?:,(may-alias|must-alias))?\)")
_OPERAND_ALIAS = pattern(rf"{_INDEX}:\((-?\d+),{_INDEX}\)")
_PRINTED_ALIAS = pattern(r"\{([\d,]*)\}: \((\d+), \{([\d,]*)\}, (may|must)-alias\), ")
_PER_ALIAS = len("{}: (, {}, -alias), ")


def printed_aliases(text: str) -> list[tuple[str, str, str, str]] | None:
    """Output, parameter, index and kind (`may`, `must`) of aliases in the form XLA prints.

    None for other text.
    """
    found = _PRINTED_ALIAS.findall(text[2:-2] + ", ")
    length = sum(sum(map(len, alias)) + _PER_ALIAS for alias in found)
    if not found or length != len(text) - 2 or text[:2] != "{ " or text[-2:] != " }":
        return None
    numbers = {
        number for alias in found for place in alias[:3] if place for number in place.split(",")
    }
    return found if all(number.isdecimal() and len(number) < 10 for number in numbers) else None


@memoized
def parse_aliasing(text: str) -> tuple[Alias, ...]:
    """`{ {0}: (0, {}, may-alias), {1}: (1, {}) }` of the header's input_output_alias."""
    printed = printed_aliases(text)
    if printed is not None:
        return tuple(
            Alias(split_ints(output), int(parameter), split_ints(index), f"{kind}-alias")
            for output, parameter, index, kind in printed
        )
    return tuple(
        Alias(split_ints(m[1]), parse_int(m[2]), split_ints(m[3]), m[4] or "may-alias")
        for m in _entries(text, _ALIAS, "aliases { {output}: (parameter, {index}, may-alias), … }")
    )


@memoized
def parse_buffer_donor(text: str) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """`{ (0, {}), (1, {0}) }`: parameter numbers and indices."""
    matches = _entries(text, _DONOR, "buffer donors { (parameter, {index}), … }")
    return tuple((parse_int(m[1]), split_ints(m[2])) for m in matches)


@memoized
def parse_output_to_operand_aliasing(text: str) -> tuple[Alias, ...]:
    """`{{0}: (1, {}), …}` of fusions, custom calls and asynchronous starts."""
    return tuple(
        Alias(split_ints(m[1]), parse_int(m[2]), split_ints(m[3]), "must-alias")
        for m in _entries(text, _OPERAND_ALIAS, "aliases {{output}: (operand, {index}), …}")
    )


def _entries(text: str, entry: re.Pattern[str], what: str) -> list[re.Match[str]]:
    dense = compact(text)
    if not (dense.startswith("{") and dense.endswith("}")):
        raise malformed(what, text)
    matches: list[re.Match[str]] = []
    position = 1
    while position < len(dense) - 1:
        if matches:
            if dense[position] != ",":
                raise malformed(what, text)
            position += 1
        match = entry.match(dense, position)
        if match is None:
            raise malformed(what, text)
        matches.append(match)
        position = match.end()
    return matches
