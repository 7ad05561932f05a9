"""Modules before and after passes of XLA: shrunk by one plan, they still compute the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hloopt.diagnostics import HloError
from hloopt.equivalence.agreement import first_difference
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.limits import Limits
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Value
from hloopt.ir import Module
from hloopt.shrink import plan_shrink
from hloopt.text import parse_module
from hloopt.verifier import verify_module

LEAST_RUN = 0.8
"""Of the pairs that get smaller, how many have to run."""
EVERY = 6


def outputs(module: Module) -> Value:
    devices = devices_of(module.replica_count, module.num_partitions)
    arguments = [Inputs().arguments(module.entry, device, 0) for device in devices]
    limits = Limits(steps=20_000, memory=1 << 28)
    return tuple(run_module(module, arguments, devices=devices, limits=limits))


@pytest.mark.parametrize("budget", [0, 300])
def test_pairs_that_agree_still_agree(budget: int, shared: Path) -> None:
    folder = shared / "oracle" / "pass_pairs"
    records = map(json.loads, (folder / "index.jsonl").read_text().splitlines())
    files = sorted({str(record["file"]) for record in records})
    tried = run = 0
    wrong = []
    for file in files[::EVERY]:
        pair = [parse_module((folder / f"{file}.{s}.hlo").read_text()) for s in ("before", "after")]
        plan = plan_shrink(pair, budget)
        if not plan.sizes or any(verify_module(module) for module in pair):
            continue
        tried += 1
        small = [plan.apply(module) for module in pair]
        assert not any(verify_module(module) for module in small), file
        try:
            differ = first_difference(*map(outputs, small))
        except HloError:  # what the interpreter cannot run, whatever its size
            continue
        run += 1
        if differ and first_difference(*map(outputs, pair)) is None:
            wrong.append(file)
    assert wrong == []
    assert run >= LEAST_RUN * tried > 0
