"""Every attribute that the table has counts, unless its class of content is left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from hloopt.analysis.content import CLASSES
from hloopt.analysis.fingerprint import LEFT_OUT, fingerprint
from hloopt.diagnostics import HloError
from hloopt.ir.attributes.table import Attribute, attributes_of
from hloopt.ir.attributes.text import split_attributes
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape_parser import parse_shape
from hloopt.text import parse_module

_LEFT_OUT = frozenset[str]().union(*(CLASSES[name].attributes for name in LEFT_OUT))
_MEANINGLESS = {
    (Opcode.MAP, "dimensions"),  # a map is over all dimensions, whatever is written
}
_WITH_ALL_VALUES = {
    attribute: opcode
    for opcode in Opcode
    for attribute in attributes_of(opcode)
    if (opcode, attribute.name) not in _MEANINGLESS
}
"""An opcode of each attribute, all whose values are tried with that one."""
_LINE = re.compile(r"= (?:\(.*?\)|\S+) [\w-]+\(.*?\), (.*)")
_MORE = (
    *("true", "false", "0", "1", "{0}", "{1}", "{}", '"a"', '"b"', "{{0,1}}", "{{1,0}}"),
    *(
        "TOTAL",
        "PARTIAL",
        "{1,2}",
        "a",
        "b",
        "{size=2}",
        "{size=3}",
        "{a=1}",
        "{a=2}",
        "-1",
        "{0:1}",
    ),
)


@pytest.fixture(scope="module")
def texts(root: Path) -> list[str]:
    """Texts of values, as many kinds as our tests of reading have."""
    found = dict.fromkeys(_MORE)
    for name in ("opcode_attributes", "common_attributes"):
        page = root / "tests" / "oracle" / "hlo_text" / f"{name}.txt"
        for line in page.read_text(encoding="utf-8").splitlines():
            if match := _LINE.search(line):
                try:
                    found.update(dict.fromkeys(split_attributes(match[1]).values()))
                except HloError:
                    continue
    return list(found)


@pytest.fixture(scope="module")
def values_of(texts: list[str]) -> Callable[[Attribute], dict[str | None, str]]:
    """Texts for an attribute, one for each that XLA prints otherwise, or leaves out."""

    @cache
    def values(attribute: Attribute) -> dict[str | None, str]:
        found: dict[str | None, str] = {}
        for text in texts:
            try:
                printed = attribute.canonical(text)
            except HloError:
                continue
            found.setdefault(printed, text)
        return found

    return values


def module_with(opcode: Opcode, name: str, value: str) -> Module:
    module = parse_module("ENTRY e { p = f32[2,2] parameter(0) ROOT r = f32[2,2] copy(p) }")
    entry = module.entry
    operands = [entry.parameters[0]] * 2
    shape = parse_shape("f32[2,2]")
    payload = "{{1,2},{3,4}}" if opcode is Opcode.CONSTANT else ""
    entry.root = entry.add(opcode, shape, operands, payload=payload, attributes={name: value})
    return module


@pytest.mark.parametrize("opcode", Opcode)
def test_other_values_have_other_fingerprints(
    opcode: Opcode, values_of: Callable[[Attribute], dict[str | None, str]]
) -> None:
    for attribute in attributes_of(opcode):
        if attribute.is_reference or (opcode, attribute.name) in _MEANINGLESS:
            continue
        if attribute.name in _LEFT_OUT:
            continue
        values = values_of(attribute)
        assert len(values) >= 2 or set(values) == {None}, attribute.name
        # Which values are one is up to the attribute, whether they count is up to the opcode, too.
        some = list(values.values())
        if opcode is not _WITH_ALL_VALUES[attribute]:
            some = some[:3]
        prints = {text: fingerprint(module_with(opcode, attribute.name, text)) for text in some}
        assert len(set(prints.values())) == len(prints), (attribute.name, prints)
        for before, after in pairwise(some):
            for name, each in CLASSES.items():
                if attribute.name in each.attributes:
                    ignored = LEFT_OUT | {name}
                    assert fingerprint(
                        module_with(opcode, attribute.name, before), ignored=ignored
                    ) == fingerprint(module_with(opcode, attribute.name, after), ignored=ignored)
