"""`hloopt sharding explain --exact`: the partitioner of jaxlib tells."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.sharding.sharding_pairs import paths_of

from hloopt.cli import main

pytestmark = pytest.mark.oracle


def explained(
    before: str, after: str, capsys: pytest.CaptureFixture[str]
) -> tuple[dict[str, int], dict[str, str], str]:
    """How sure origins are, the origins, and what is said beside them."""
    pytest.importorskip("jaxlib", reason="needs the extra xla")
    assert main(["sharding", "explain", before, after, "--exact", "--format", "json"]) == 0
    out, err = capsys.readouterr()
    report = json.loads(out)
    origins = {c["name"]: c["made_by"]["name"] for c in report["collectives"]}
    return report["confidence"], origins, err


def test_the_partitioner_tells_what_the_texts_leave_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    confidence, origins, err = explained(*paths_of("chained"), capsys)
    assert confidence == {"exact": 2, "clear": 0, "ambiguous": 0}
    assert origins == {"collective-permute": "cut", "collective-permute.1": "padded"}
    assert err == ""


def test_loops_that_hand_on_a_part_of_their_state_are_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    confidence, origins, _ = explained(*paths_of("looped"), capsys)
    assert confidence == {"exact": 1, "clear": 0, "ambiguous": 0}
    assert origins == {"all-gather": "d"}


def test_what_jaxlib_changes_is_told_where_the_texts_say_the_same(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = str(shared / "oracle" / "spmd" / "jax" / "transformer.sdy")
    paths = f"{name}.before.hlo.gz", f"{name}.after.hlo.gz"
    confidence, _, err = explained(*paths, capsys)
    assert confidence == {"exact": 73, "clear": 2, "ambiguous": 0}
    assert "it tells the origins that the texts do for 73 of 75" in err
