"""`hloopt sharding explain --exact`: the partitioner of jaxlib tells."""

from __future__ import annotations

import json

import pytest
from tests.sharding.sharding_pairs import paths_of

from hloopt.cli import main

pytestmark = pytest.mark.oracle


def test_the_partitioner_tells_what_the_texts_leave_open(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("jaxlib")
    arguments = ["sharding", "explain", *paths_of("chained"), "--exact", "--format", "json"]
    assert main(arguments) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["confidence"] == {"exact": 2, "clear": 0, "ambiguous": 0}
    origins = {c["name"]: c["made_by"]["name"] for c in report["collectives"]}
    assert origins == {"collective-permute": "cut", "collective-permute.1": "padded"}
