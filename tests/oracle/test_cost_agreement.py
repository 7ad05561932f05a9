"""Modules cost what XLA's HloCostAnalysis says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from corpus import CorpusEntry, choose_entries
from cost_agreement import LEAST_AGREEING, Judge, known_costs, sweep
from hloopt.files import read_source

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    judge = Judge()
    yield judge
    judge.close()


def test_our_own_modules_agree(judge: Judge, root: Path) -> None:
    paths = sorted((root / "testdata").glob("*.hlo*"))
    assert len(paths) > 10
    for path in paths:
        verdict = judge.judge(path.name, read_source(str(path)).text)
        assert verdict.status == "agree", verdict


@pytest.mark.slow
def test_corpus_modules_agree(judge: Judge, shared: Path) -> None:
    entries = choose_entries(shared, max_instructions=1 << 20, every=20, pattern="")
    verdicts = list(sweep(entries, jobs=2))
    counts = Counter(verdict.status for verdict in verdicts)
    assert counts["agree"] >= LEAST_AGREEING * (counts["agree"] + counts["differ"])
    assert counts["agree"] > len(entries) / 2, counts
    known = known_costs()
    assert [v for v in verdicts if v.status == "differ" and v.id not in known] == []


def test_known_differences_differ(judge: Judge, corpus_entries: list[CorpusEntry]) -> None:
    entries = {entry.id: entry for entry in corpus_entries}
    for id in known_costs():
        assert judge.judge(id, entries[id].text()).status == "differ", id


def test_a_difference_is_seen(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    from hloopt.analysis.cost import rules
    from hloopt.ir import Opcode

    text = "HloModule m ENTRY e { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }"
    assert judge.judge("m", text).status == "agree"
    monkeypatch.setitem(rules.RULES, Opcode.NEGATE, rules.DEFAULT)
    assert judge.judge("m", text).reason == "flops 0, XLA has 4"
