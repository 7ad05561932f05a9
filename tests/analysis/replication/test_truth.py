"""What the analysis calls equal is equal when the program runs, on all its devices."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.replication.truth import check_claims

from hloopt.analysis.replication import ALL
from hloopt.analysis.replication.rules import Rules
from hloopt.files import read_module

TESTDATA = Path(__file__).resolve().parents[3] / "testdata"
PROGRAMS = [
    ("mlp_psum_8dev.after_optimizations.hlo", 50),
    ("ring_matmul_8dev.after_spmd_partitioning.hlo", 50),
    pytest.param("transformer_scan_8dev.after_spmd_partitioning.hlo", 1000, marks=pytest.mark.slow),
    pytest.param("transformer_scan_8dev.after_optimizations.hlo.gz", 2000, marks=pytest.mark.slow),
]
"""Each with how many claims there are about its arrays, at least."""


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("name", "least"), PROGRAMS)
def test_claims_hold_on_real_programs(name: str, least: int, seed: int) -> None:
    truth = check_claims(read_module(str(TESTDATA / name)), seed)
    assert truth.wrong == []
    assert truth.checked >= least


def test_a_false_claim_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the test above relies on."""
    monkeypatch.setattr(Rules, "entry_parameter", lambda self, parameter: ALL)
    truth = check_claims(read_module(str(TESTDATA / "mlp_psum_8dev.after_optimizations.hlo")), 0)
    assert any("leaf 0: on devices 0, 1, 2, 3, 4, 5, 6, 7" in claim for claim in truth.wrong)
