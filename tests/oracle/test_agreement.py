"""The interpreter computes what XLA:CPU computes, on XLA's own test modules."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from agreement import LEAST_AGREEING, sweep
from agreement_lib.judge import Judge, Settings
from corpus import choose_entries

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

COLLECTIVES = "all-(reduce|gather|to-all)|reduce-scatter|collective-(permute|broadcast)"


@pytest.fixture
def settings(shared: Path) -> Settings:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    return Settings(oracle=shared / "oracle", seeds=2, timeout=15)


@pytest.mark.parametrize(
    ("pattern", "every"), [("", 120), (COLLECTIVES, 40)], ids=["all", "collectives"]
)
def test_corpus_modules_agree(shared: Path, settings: Settings, pattern: str, every: int) -> None:
    entries = choose_entries(shared, max_instructions=200, every=every, pattern=pattern)
    verdicts = list(sweep(entries, settings, jobs=2))
    counts = Counter(verdict.status for verdict in verdicts)
    ran = counts["agree"] + counts["differ"] + counts["not ours"]
    assert ran, counts
    wrong = [v for v in verdicts if v.status in ("differ", "not ours")]
    assert [f"{v.id}: {v.reason}" for v in wrong if v.status == "differ" and not v.kind] == []
    # + 1: it is a small sample
    assert len(wrong) <= (1 - LEAST_AGREEING) * ran + 1, [f"{v.id}: {v.kind}" for v in wrong]


def test_a_difference_is_seen(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    from hloopt.interpreter import kernels
    from hloopt.ir import Opcode

    text = "HloModule m ENTRY e { p = f32[4] parameter(0)  ROOT n = f32[4] negate(p) }"
    assert Judge(settings).judge("m", text).status == "agree"
    broken = kernels.Kernel(lambda instruction, operand: operand, calls=False)
    monkeypatch.setitem(kernels.kernels(), Opcode.NEGATE, broken)
    assert Judge(settings).judge("m", text).status == "differ"
