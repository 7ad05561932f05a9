"""Passes over collectives: the devices compute what they computed before."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.consistency import assert_consistent
from tests.properties.strategies.collective_modules import collective_module_texts

from hloopt.equivalence import Reference, RunSettings
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

CASES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("all-gather-combiner", {}, ["all-gather"]),
    ("all-gather-combiner", {"combine_by_dim": True, "combine_threshold_count": 2}, ["all-gather"]),
    ("all-reduce-combiner", {}, ["all-reduce"]),
    ("all-reduce-combiner", {"combine_threshold_in_bytes": 200}, ["all-reduce"]),
    ("reduce-scatter-combiner", {}, ["reduce-scatter"]),
    ("reduce-scatter-combiner", {"combine_threshold_in_bytes": 40}, ["reduce-scatter"]),
    ("collective-permute-decomposer", {}, ["collective-permute", "all-reduce"]),
    (
        "collective-permute-decomposer",
        {"pipeline_parallelism_opt_level": "enable"},
        ["collective-permute", "all-reduce"],
    ),
    ("all-gather-bcast-reorder", {}, ["all-gather of a broadcast"]),
    ("all-gather-cse", {}, ["all-gather"]),
]


@pytest.mark.parametrize(("name", "options", "opcodes"), CASES)
@given(data=st.data())
@settings(max_examples=25)
def test_devices_compute_the_same(
    name: str, options: dict[str, Any], opcodes: list[str], data: st.DataObject
) -> None:
    text = data.draw(collective_module_texts(*opcodes))
    module = parse_module(text)
    assert verify_module(module) == []
    if create_pass(name, options).run(module, PassContext()):
        assert verify_module(module) == []
        assert_consistent(module)
        reference = Reference(parse_module(text), RunSettings(seeds=3))
        assert reference.compare(parse_module(print_module(module))) is None
