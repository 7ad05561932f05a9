"""What the replication analysis says of the corpus is true when its programs run."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.analysis.replication.truth import SETTINGS, check_claims

from corpus import choose_entries
from hloopt.interpreter.errors import RunError
from hloopt.ir.devices.device_counts import device_counts
from hloopt.text import parse_module

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

SEVERAL_DEVICES = (
    "all-(reduce|gather|to-all)|reduce-scatter|collective-(permute|broadcast)"
    "|replica_count|num_partitions|(replica|partition)-id"
)
LIMITS = SETTINGS._replace(steps=3000, memory=1 << 24)


def test_claims_hold_on_the_corpus(shared: Path) -> None:
    entries = choose_entries(shared, max_instructions=300, every=3, pattern=SEVERAL_DEVICES)
    wrong: list[str] = []
    checked = 0
    for entry in entries:
        module = parse_module(entry.text())
        replicas, partitions = device_counts(module)
        if not 2 <= replicas * partitions <= 64:
            continue
        try:
            truth = check_claims(module, 1, LIMITS)
        except RunError:  # deadlocks and unsupported opcodes: nothing to compare
            continue
        wrong += [f"{entry.id}: {claim}" for claim in truth.wrong]
        checked += truth.checked
    assert wrong == []
    assert checked
