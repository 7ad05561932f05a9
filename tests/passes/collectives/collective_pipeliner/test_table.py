"""The modules of the table compute what they did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance_lib.options import pass_options
from hloopt.diagnostics import HloError
from hloopt.equivalence import Reference, RunSettings
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module


@pytest.mark.slow
def test_the_modules_of_the_table_stay_the_same(shared: Path) -> None:
    """On 1, 2, 4 and 8 devices, as far as groups and shapes allow."""
    table = shared / "conformance" / "collective_pipeliner.jsonl"
    runs = 0
    for record in map(json.loads, table.read_text(encoding="utf-8").splitlines()):
        if "api" in record["options"]:
            continue
        options = pass_options(record["pass"], record["options"], record["config"])
        for counts in ((1, 1), (2, 1), (2, 2), (4, 2), (1, 8)):
            settings = RunSettings(seeds=3, counts=counts, memory=1 << 22)
            module = parse_module(record["hlo"])
            create_pass(record["pass"], options).run(module, PassContext())
            try:
                found = Reference(parse_module(record["hlo"]), settings).compare(module)
            except HloError:  # groups, shapes or a host that these devices have not, or large
                continue
            assert found is None, (record["id"], counts, found.reason)
            runs += 1
    assert runs > 200
