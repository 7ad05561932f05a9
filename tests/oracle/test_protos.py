"""Protos as real XLA writes them are read right, and what we write real XLA reads right."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from hloopt.files import read_source
from hloopt.proto import decode, encode
from hloopt.text import PrintOptions, parse_module, print_module
from xla_process import XlaProcess

pytestmark = [pytest.mark.oracle]

WHOLE = PrintOptions.default()._replace(print_large_constants=True)
_CONSTANT = re.compile(r" constant\(.*?\)(?=$|, [a-z_\-]+=)", re.M)


def differences(xla: XlaProcess, text: str, *, has_elided_constants: bool = False) -> list[str]:
    """What goes wrong with the module of `text`, measured by what XLA reads from its own proto."""
    theirs = xla.read(text, style="whole", through_proto=True)
    expected = theirs.from_proto
    if expected is None:
        return []  # XLA cannot read its own
    found: list[str] = []
    decoded = print_module(decode(theirs.proto), WHOLE)
    ours, own = (xla.read(printed, style="whole") for printed in (decoded, expected))
    if ours.text != own.text:  # XLA may read its own print as something else
        found.append("XLA's proto is read as another module")
    ours = xla.read(encode(parse_module(text)), style="whole")
    read = ours.text or ours.error or ""
    if has_elided_constants:  # XLA fills them with what comes to its mind
        expected, read = (_CONSTANT.sub(" constant({...})", t) for t in (expected, read))
    if read != expected:
        found.append("our proto is read as another module")
    return found


TESTDATA = sorted((Path(__file__).parents[2] / "testdata").glob("*.hlo*"))


@pytest.mark.parametrize("path", TESTDATA, ids=lambda path: path.name)
def test_testdata_means_the_same_as_proto(xla: XlaProcess, path: Path) -> None:
    text = read_source(str(path)).text
    assert differences(xla, text, has_elided_constants="{...}" in text) == []


def test_a_sample_of_the_corpus_means_the_same_as_proto(
    xla: XlaProcess, corpus_entries: list[Any]
) -> None:
    chosen = [
        entry
        for entry in corpus_entries
        if entry.verdict == "ok" and entry.facts.get("huge_constants", 0) == 0
    ]
    failures: list[tuple[str, list[str]]] = []
    for entry in chosen[::40]:
        is_elided = entry.facts.get("short_constants", False)
        if found := differences(xla, entry.text(), has_elided_constants=is_elided):
            failures.append((entry.id, found))
    assert failures == []
    assert chosen
