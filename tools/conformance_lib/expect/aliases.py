"""Expectations about the module's header: buffers that outputs share with parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from conformance_lib.errors import RecordError
from conformance_lib.expectations import More, compare, compare_number, expectation
from conformance_lib.forms import (
    BOOL,
    BOUND,
    INT,
    Form,
    either,
    keys,
    mapping,
    matching,
    only,
    optional_list,
    row,
)
from conformance_lib.scene import Scene
from hloopt.ir.attributes.values import Alias, parse_aliasing, parse_buffer_donor

_INDEX_TEXT = re.compile(r"\{\s*((?:\d+\s*(?:,\s*\d+\s*)*)?)\}")
_DONOR_TEXT = re.compile(r"\((\d+),\s*(\{[\d,\s]*\})\)")

_BRACES: Form = matching(
    "an index", lambda t: None if _INDEX_TEXT.fullmatch(t) else f"'{t}' is no index {{i,j}}"
)
_DONOR = matching(
    "a buffer",
    lambda t: None if _DONOR_TEXT.fullmatch(t) else f"'{t}' is no (parameter, {{index}})",
)
_INDEX = either(_BRACES, optional_list(INT))
_KINDS = {"may": "may-alias", "must": "must-alias"}


_RANK = "cross_program_prefetch_index"


def _index(value: Any) -> tuple[int, ...]:
    if isinstance(value, list):
        return tuple(value)
    match = _INDEX_TEXT.fullmatch(value)
    if match is None:
        raise RecordError(f"'{value}' is no index {{i,j}}")
    return tuple(int(number) for number in match[1].split(",") if number.strip())


def _aliases(scene: Scene) -> tuple[Alias, ...]:
    return parse_aliasing(scene.module.attributes.get("input_output_alias", "{}"))


@expectation("alias_count", BOUND)
def alias_count(scene: Scene, expected: int | str, more: More) -> Iterator[str]:
    yield from compare_number("input/output aliases", len(_aliases(scene)), expected)


_ENTRY = keys(
    {"output": _INDEX, "parameter": INT, "index": _INDEX},
    {"kind": only(*_KINDS, *_KINDS.values())},
)


@expectation("input_output_alias", optional_list(_ENTRY))
def input_output_alias(scene: Scene, expected: list[dict[str, Any]], more: More) -> Iterator[str]:
    found = sorted(_aliases(scene))
    wanted = [
        Alias(
            _index(one["output"]),
            one["parameter"],
            _index(one["index"]),
            _KINDS.get(one.get("kind", "may"), one.get("kind", "may")),
        )
        for one in expected
    ]
    yield from compare("aliases", found, sorted(wanted))


@expectation("output_aliases", mapping(_BRACES, either(row(INT, _BRACES), only("any", None))))
def output_aliases(scene: Scene, expected: dict[str, Any], more: More) -> Iterator[str]:
    found = {alias.output_index: alias for alias in _aliases(scene)}
    for output, wanted in expected.items():
        alias = found.get(_index(output))
        if wanted == "any":
            if alias is None:
                yield f"output {output} has no alias"
            continue
        place = None if alias is None else (alias.parameter, alias.parameter_index)
        expected_place = None if wanted is None else (wanted[0], _index(wanted[1]))
        yield from compare(f"alias of output {output}", place, expected_place)


@expectation("buffer_donor", mapping(_DONOR, BOOL))
def buffer_donor(scene: Scene, expected: dict[str, bool], more: More) -> Iterator[str]:
    donors = parse_buffer_donor(scene.module.attributes.get("buffer_donor", "{}"))
    for text, wanted in expected.items():
        match = _DONOR_TEXT.fullmatch(text)
        assert match is not None, "the form of the expectation has been checked"
        is_donor = (int(match[1]), _index(match[2])) in donors
        yield from compare(f"{text} is a donor", is_donor, wanted)


@expectation("cross_program_prefetches", optional_list(keys({"parameter": INT, "index": _INDEX})))
def cross_program_prefetches(
    scene: Scene, expected: list[dict[str, Any]], more: More
) -> Iterator[str]:
    wanted = [(one["parameter"], _index(one["index"])) for one in expected]
    yield from compare("cross-program prefetches", _prefetches(scene), wanted)


@expectation("cross_program_prefetch_count", BOUND)
def cross_program_prefetch_count(scene: Scene, expected: int | str, more: More) -> Iterator[str]:
    entry = scene.module.entry.instructions
    found = {i.attributes[_RANK] for i in entry if _RANK in i.attributes}
    yield from compare_number("cross-program prefetches", len(found), expected)


def _prefetches(scene: Scene) -> list[tuple[int, tuple[int, ...]]]:
    """The entry parameters and indices read by copy-starts, by cross_program_prefetch_index."""
    found: dict[int, tuple[int, tuple[int, ...]]] = {}
    for instruction in scene.module.entry.instructions:
        number = instruction.attributes.get(_RANK)
        if number is None or int(number) in found:
            continue
        index: tuple[int, ...] = ()
        source = instruction.operands[0]
        while source.opcode == "get-tuple-element":
            source, index = source.operands[0], (source.tuple_index, *index)
        if source.opcode != "parameter":
            raise RecordError(f"%{instruction.name} does not fetch a parameter")
        found[int(number)] = source.parameter_number, index
    return [found[number] for number in sorted(found)]
