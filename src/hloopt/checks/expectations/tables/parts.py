"""Parts that tables share: keys of rows, measures of instructions, attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from hloopt.checks.expectations.doubts import unknown_runs
from hloopt.checks.expectations.model import Attribute, Measure, Row
from hloopt.checks.expectations.units import COUNT
from hloopt.checks.view import View
from hloopt.diagnostics import HloError
from hloopt.ir.attributes.values.numbers import split_ints
from hloopt.ir.attributes.values.replica_groups import parse_iota_tile
from hloopt.ir.attributes.values.sharding_text import canonical_sharding, without_metadata
from hloopt.ir.attributes.values.tokens import compact
from hloopt.ir.instruction import Instruction
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.patterns import pattern
from hloopt.query.keys import Key, Values
from hloopt.query.kinds import NUMBER, Accepts, Kind, Word
from hloopt.query.vocabulary import Vocabulary, vocabulary

UNKNOWN = "unknown"


def key(name: str, kind: Kind, doc: str, read: Callable[[Any], Values]) -> Key:
    """A key of rows that looks at their record."""
    return Key(name, kind, doc, lambda facts: lambda row: read(row.record))


def instruction_of(row: Row) -> Instruction:
    return row.instruction


def keys_and_instructions(example: str, *own: Key) -> Vocabulary:
    """Own keys, and those of the instruction that a row is about."""
    return vocabulary(own, instruction_of, example)


def _number_or_unknown(operator: str, words: Sequence[Word]) -> Accepts:
    """Accept numbers; an unknown one is None, and only `unknown` accepts it."""
    named = [word for word in words if word.text != UNKNOWN]
    is_named = len(named) < len(words)
    if is_named and operator != "=":
        raise words[0].error(f"'{UNKNOWN}' is neither more nor less than a number")
    accepts = NUMBER.accepting(operator, named) if named else lambda number: False
    return lambda number: is_named if number is None else accepts(number)


MAYBE_NUMBER = Kind(f"an integer or {UNKNOWN}", NUMBER.operators, _number_or_unknown)


def runs() -> Measure:
    """The measure of how often rows run in one run of the module."""
    return Measure(
        "runs", "how often they run in one run of the module, loops by their trips", COUNT,
        lambda view: lambda row: view.runs(row.instruction).times, doubt=unknown_runs,
    )  # fmt: skip


def of_instruction(name: str, doc: str, read: Callable[[Instruction], str]) -> Attribute:
    """An attribute that the instruction of a row has."""
    return Attribute(name, doc, lambda row: read(row.instruction), compact)


def sharding_text(text: str) -> str:
    """The one form of a sharding: devices listed, no metadata. A text that is none stays so."""
    try:
        return _IOTA.sub(_listed, without_metadata(canonical_sharding(compact(text))))
    except HloError:
        return compact(text)


def _listed(tile: re.Match[str]) -> str:
    if prod(split_ints(tile[2])) > _MOST_LISTED:
        return tile[0]
    devices = parse_iota_tile(f"[{tile[1]}]<=[{tile[2]}]{tile[3]}").devices()
    return f"devices=[{tile[1]}]{','.join(map(str, devices))}"


_IOTA = pattern(r"devices=\[([\d,]+)\]<=\[([\d,]+)\]((?:T\([\d,]+\))?)")
_MOST_LISTED = 100_000
"""Devices beyond which formulas are compared as they are."""
SHARDING = Attribute(
    "sharding", "the sharding; `<=[4]` and `0,1,2,3` are equal",
    lambda row: row.instruction.attributes.get("sharding", ""), sharding_text,
)  # fmt: skip
SHAPE = of_instruction("shape", "shape and layout as XLA prints them", lambda i: i.shape.text)
OP_NAME = Attribute("op_name", "op_name of the metadata", lambda row: op_name_of(row.instruction))


def per_run(view: View, amount: Callable[[Row], int]) -> Callable[[Row], int]:
    """An amount times the number of runs of a row."""
    return lambda row: amount(row) * view.runs(row.instruction).times
