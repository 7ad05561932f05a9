"""Passes keep the meaning of XLA's own test modules, as real XLA runs them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.conftest import Sample

from corpus import choose_entries
from equivalence import Checker, Report, Settings, sweep

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

CALLS = """HloModule calls
halve { x = f32[4]{0} parameter(0)  h = f32[] constant(0.5)
  b = f32[4]{0} broadcast(h), dimensions={}  ROOT m = f32[4]{0} multiply(x, b) }
ENTRY main { p = f32[4]{0} parameter(0)  c = f32[4]{0} call(p), to_apply=halve
  d = f32[4]{0} call(p), to_apply=halve  ROOT s = f32[4]{0} subtract(c, d) }
"""

COPIES = """HloModule copies
ENTRY main { p = f32[2,3]{1,0} parameter(0)  a = f32[2,3]{1,0} copy(p)  b = f32[2,3]{0,1} copy(p)
  c = f32[3,2]{1,0} bitcast(b)  ROOT t = (f32[2,3]{1,0}, f32[3,2]{1,0}) tuple(a, c) }
"""

BITCASTS = """HloModule bitcasts
ENTRY main { p = f32[2,3]{1,0} parameter(0)
  a = f32[3,2]{1,0} bitcast(p)  b = f32[3,2]{0,1} bitcast(p)
  ROOT t = (f32[3,2]{1,0}, f32[3,2]{0,1}) tuple(a, b) }
"""


@pytest.fixture
def settings(shared: Path) -> Settings:
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    return Settings(oracle=shared / "oracle")


def test_simplified_corpus_modules_compute_the_same(
    shared: Path, settings: Settings, sample: Sample
) -> None:
    entries = sample.of(choose_entries(shared, max_instructions=200, every=1, pattern=""), 120)
    report = Report()
    for verdict in sweep(entries, settings, jobs=2):
        report.add(verdict)
    assert report.failures == []
    assert report.counts["equal"], report.summary()


def test_passes_of_simplify_validate_on_the_corpus(shared: Path, sample: Sample) -> None:
    entries = sample.of(choose_entries(shared, max_instructions=200, every=1, pattern=""), 250)
    report = Report()
    for verdict in sweep(entries, Settings(oracle=shared / "oracle", engine="numpy"), jobs=2):
        report.add(verdict)
    assert report.failures == []
    assert report.counts["equal"], report.summary()


@pytest.mark.parametrize(
    ("after", "status"),
    [
        (CALLS, "equal"),
        (CALLS.replace("subtract", "add"), "different"),
        (CALLS.replace("f32[4]", "f32[5]"), "different"),
        (CALLS.replace("ROOT s", "ROOT t = f32[4]{0} negate(c)  s"), "different"),
    ],
    ids=["same", "another operation", "another shape", "another root"],
)
def test_a_comparison_tells_programs_apart(settings: Settings, after: str, status: str) -> None:
    assert Checker(settings).compare("m", CALLS, after).status == status


@pytest.mark.parametrize(
    ("summand", "status"), [("6e-8", "equal"), ("1.2e-7", "different")], ids=["one", "two"]
)
def test_a_unit_in_the_last_place_is_rounding(
    settings: Settings, summand: str, status: str
) -> None:
    text = """HloModule m
    ENTRY e { p = f16[] parameter(0)  z = f16[] constant(0)  m = f16[] multiply(p, z)
      c = f16[] constant(0)  ROOT s = f16[] add(m, c) }
    """
    after = text.replace("c = f16[] constant(0)", f"c = f16[] constant({summand})")
    assert Checker(settings).compare("m", text, after).status == status


def test_a_module_xla_cannot_run_is_counted_by_kind(settings: Settings) -> None:
    text = "HloModule m\nENTRY e { t = token[] after-all()  ROOT i = (f32[2], token[]) infeed(t) }"
    verdict = Checker(settings).compare("m", text, text)
    assert (verdict.status, verdict.kind) == ("not runnable", "unsupported")


def test_a_module_is_transformed_then_compared(settings: Settings) -> None:
    assert Checker(settings).check("calls", CALLS).status == "equal"
    plain = "HloModule m\nENTRY e { ROOT p = f32[2]{0} parameter(0) }"
    assert Checker(settings).check("plain", plain).status == "unchanged"


@pytest.mark.parametrize("text", [COPIES, BITCASTS], ids=["of an operand", "of a bitcast"])
def test_layouts_a_bitcast_depends_on_are_kept(settings: Settings, text: str) -> None:
    assert Checker(settings).check("module", text).status in ("equal", "unchanged")
