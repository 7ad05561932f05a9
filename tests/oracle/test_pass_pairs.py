"""Modules before and after single passes of real XLA: ours makes the same of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from hloopt.ir import Computation, Module
from hloopt.passes.base import PassContext
from hloopt.passes.registry import create_pass
from hloopt.text import parse_module

pytestmark = [pytest.mark.slow]

# What XLA:CPU's pipelines give each pass, by its name there, which is ours too.
OPTIONS: dict[str, dict[str, object]] = {
    "call-inliner": {"single_call_site": True},
    "cse": {},
    "dce": {},
    "flatten-call-graph": {},
    "tuple-simplifier": {},
}


def structure(module: Module) -> Counter[frozenset[tuple[object, int]]]:
    """The computations, whatever the names: which operations on what, and how often."""

    def of(computation: Computation) -> frozenset[tuple[object, int]]:
        operations = Counter(
            (i.opcode, i.shape, i.payload, tuple(o.opcode for o in i.operands), i.is_root)
            for i in computation.instructions
        )
        return frozenset(operations.items())

    return Counter(map(of, module.computations.values()))


@pytest.mark.parametrize("name", OPTIONS)
def test_the_pass_does_what_xla_does(name: str, shared: Path) -> None:
    folder = shared / "oracle" / "pass_pairs"
    records = map(json.loads, (folder / "index.jsonl").read_text().splitlines())
    files = [record["file"] for record in records if record["pass"] == name]
    assert files
    different = []
    for file in files:
        ours = parse_module((folder / f"{file}.before.hlo").read_text())
        create_pass(name, OPTIONS[name]).run(ours, PassContext())
        theirs = parse_module((folder / f"{file}.after.hlo").read_text())
        if structure(ours) != structure(theirs):
            different.append(file)
    assert different == []
