"""What we print, every instruction written anew, is the same module to real XLA."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hloopt import HloError, PrintOptions, parse_module, print_module, roundtrip_text

if TYPE_CHECKING:
    from corpus import CorpusEntry

pytestmark = [pytest.mark.oracle]


def roundtrip(shared: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    script = shared / "oracle" / "roundtrip.py"
    command = [sys.executable, str(script), "--corpus", str(shared / "corpus"), *arguments]
    return subprocess.run(
        [*command, "--py", "hloopt:roundtrip_text"], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("level", ["canonical", "full"])
def test_every_benchmark_module_comes_back(shared: Path, level: str) -> None:
    result = roundtrip(shared, "--kinds", "benchmark", "--level", level)
    assert result.returncode == 0, result.stdout
    assert re.search(r"\b[1-9]\d* pass, 0 fail", result.stdout), result.stdout


def test_every_module_xla_reads_comes_back(shared: Path) -> None:
    result = roundtrip(shared)
    reads = next(line for line in result.stdout.splitlines() if "(XLA reads)" in line)
    assert ", 0 fail," in reads, result.stdout
    refuses = next(line for line in result.stdout.splitlines() if "(XLA refuses)" in line)
    assert ", 0 fail," in refuses, result.stdout


def test_what_xla_refuses_is_refused_with_a_place(corpus_entries: list[CorpusEntry]) -> None:
    for entry in corpus_entries:
        if entry.verdict == "error":
            with pytest.raises(HloError) as caught:
                roundtrip_text(entry.text())
            assert caught.value.location, entry.id


def test_nearly_all_is_printed_as_xla_does(shared: Path, corpus_entries: list[CorpusEntry]) -> None:
    counts = Counter(
        _is_printed_alike(entry, shared / "corpus" / entry.facts["expected"])
        for entry in corpus_entries
        if "expected" in entry.facts
    )
    assert counts[True] > 0.99 * counts.total()


def _is_printed_alike(entry: CorpusEntry, expected: Path) -> bool:
    printed = print_module(parse_module(entry.text()), PrintOptions.default())
    return bool(printed.strip() == expected.read_text(encoding="utf-8").strip())


INEXPRESSIBLE = {
    *("hlo_parser_test/TopKUnstable.0", "topk_rewriter_test/TopKDecompositionUnstable.0"),
    "spmd_partitioner_test/LayoutConstraintCustomCallUnreducedMax.0",
    "spmd_partitioner_test/NamedUnreducedParamGrouped.0",
}


def test_newer_syntax_is_read_and_written_for_the_older_reader(
    corpus_entries: list[CorpusEntry], xla_print: Callable[[str], str | None]
) -> None:
    newer = [e for e in corpus_entries if e.facts.get("note", "").startswith("newer syntax")]
    assert newer
    for entry in newer:
        printed = roundtrip_text(entry.text())
        assert roundtrip_text(printed) == printed, entry.id
        options = PrintOptions(always_readable=True, older_syntax=True)
        if entry.id in INEXPRESSIBLE:
            with pytest.raises(HloError, match="older HLO syntax cannot say"):
                print_module(parse_module(entry.text()), options)
        else:
            assert xla_print(print_module(parse_module(entry.text()), options)), entry.id
