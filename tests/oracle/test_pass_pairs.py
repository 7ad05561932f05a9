"""Modules before and after single passes of real XLA: ours makes the same of them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from hloopt.analysis.equality import Equality
from hloopt.files import read_module
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


def differences(ours: Module, theirs: Module) -> list[str]:
    """Computations of either module that the other one has not, names and order aside.

    Two computations are the same if they have the same instructions with the same operands,
    attributes, metadata and control predecessors, and call the same.
    """
    equality = Equality(is_layout_sensitive=True, ignored=frozenset())

    def key(computation: Computation) -> tuple[bool, int]:
        return computation.is_entry, equality.class_of(computation)

    found = []
    for one, other in ((ours, theirs), (theirs, ours)):
        left = Counter(map(key, other.computations.values()))
        for computation in one.computations.values():
            left[key(computation)] -= 1
            if left[key(computation)] < 0:
                found.append(f"only in {'ours' if one is ours else 'theirs'}: {computation.name}")
    return found


def run(name: str, options: dict[str, object], file: Path) -> Module:
    module = read_module(str(file))
    create_pass(name, options).run(module, PassContext())
    return module


@pytest.mark.parametrize("name", OPTIONS)
def test_the_pass_does_what_xla_does(name: str, shared: Path) -> None:
    folder = shared / "oracle" / "pass_pairs"
    records = map(json.loads, (folder / "index.jsonl").read_text().splitlines())
    files = [record["file"] for record in records if record["pass"] == name]
    assert files
    different = []
    for file in files:
        ours = run(name, OPTIONS[name], folder / f"{file}.before.hlo")
        theirs = read_module(str(folder / f"{file}.after.hlo"))
        different += [f"{file}: {found}" for found in differences(ours, theirs)]
    assert different == []


def test_whole_steps_are_inlined_as_by_xla_for_gpus(shared: Path) -> None:
    """As JAX wrote them, before partitioning: jit, shard_map and remat become calls there."""
    files = sorted((shared / "oracle" / "gpu").rglob("before_inliner*"))
    assert files
    for file in files:
        after = file.with_name(file.name.replace("before_", "after_"))
        assert differences(run("call-inliner", {}, file), read_module(str(after))) == []


def test_a_difference_is_seen() -> None:
    text = "HloModule m\nENTRY e { x = f32[] parameter(0) n = f32[] negate(x) ROOT s = %s }"
    one, other = (parse_module(text % f"f32[] subtract({o})") for o in ("x, n", "n, x"))
    assert differences(one, one) == []
    assert differences(one, other) == ["only in ours: e", "only in theirs: e"]
