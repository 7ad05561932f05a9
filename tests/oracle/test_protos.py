"""Protos as real XLA writes them are read right, and what we write real XLA reads right."""

from __future__ import annotations

import base64
import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hloopt.proto import decode, encode
from hloopt.text import PrintOptions, parse_module, print_module

pytestmark = [pytest.mark.oracle]

# XLA in a process of its own, which some modules end.
XLA = r"""
import base64, json, os, sys
out = os.fdopen(os.dup(1), "w"); os.dup2(2, 1)
from jaxlib import _hlo
options = _hlo.HloPrintOptions(); options.print_large_constants = True
read_proto = _hlo.HloModule.from_serialized_hlo_module_proto
for line in sys.stdin:
    asked = json.loads(line)
    answer = {}
    try:
        if "text" in asked:
            module = _hlo.hlo_module_from_text(asked["text"])
        else:
            module = read_proto(base64.b64decode(asked["proto"]))
        data = module.as_serialized_hlo_module_proto()
        answer["proto"] = base64.b64encode(data).decode()
        answer["text"] = module.to_string(options)
        answer["from_proto"] = read_proto(data).to_string(options)
    except RuntimeError as error:
        answer["error"] = str(error)
    out.write(json.dumps(answer) + "\n"); out.flush()
"""


class Xla:
    """Reads text or protos, and says what it read."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def ask(self, **question: str) -> dict[str, str]:
        if self._process is None or self._process.poll() is not None:
            pipe = subprocess.PIPE
            command = [sys.executable, "-c", XLA]
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            self.close()
            return {"error": "XLA died"}
        answer: dict[str, str] = json.loads(line)
        return answer

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


@pytest.fixture(scope="module")
def xla() -> Iterator[Xla]:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    found = Xla()
    yield found
    found.close()


WHOLE = PrintOptions.default()._replace(print_large_constants=True)
_CONSTANT = re.compile(r" constant\(.*?\)(?=$|, [a-z_\-]+=)", re.M)


def differences(xla: Xla, text: str, *, has_elided_constants: bool = False) -> list[str]:
    """What goes wrong with the module of `text`, measured by what XLA reads from its own proto."""
    theirs = xla.ask(text=text)
    if "from_proto" not in theirs:
        return []  # XLA cannot read its own
    found: list[str] = []
    expected = theirs["from_proto"]
    decoded = print_module(decode(base64.b64decode(theirs["proto"])), WHOLE)
    ours, own = (xla.ask(text=printed) for printed in (decoded, expected))
    if ours.get("text") != own.get("text"):  # XLA may read its own print as something else
        found.append("XLA's proto is read as another module")
    ours = xla.ask(proto=base64.b64encode(encode(parse_module(text))).decode())
    read = ours.get("text", ours.get("error", ""))
    if has_elided_constants:  # XLA fills them with what comes to its mind
        expected, read = (_CONSTANT.sub(" constant({...})", t) for t in (expected, read))
    if read != expected:
        found.append("our proto is read as another module")
    return found


TESTDATA = sorted((Path(__file__).parents[2] / "testdata").glob("*.hlo*"))


@pytest.mark.parametrize("path", TESTDATA, ids=lambda path: path.name)
def test_testdata_means_the_same_as_proto(xla: Xla, path: Path) -> None:
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    assert differences(xla, text, has_elided_constants="{...}" in text) == []


def test_a_sample_of_the_corpus_means_the_same_as_proto(
    xla: Xla, corpus_entries: list[Any]
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
    assert len(chosen[::40]) > 100
