"""What is said of values, shardings and origins, fits whatever passes make of them."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from tests.properties.laws import MIX_PRECISIONS

from hloopt.diagnostics import PassRefused
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass, pass_names
from hloopt.reports.schedule.order import ALL_COLLECTIVES
from hloopt.text import parse_module, print_module
from hloopt.verifier import VerifierOptions, verify_module

GOLDEN = Path(__file__).parents[1] / "golden" / "passes"
FOLDERS = sorted({f.name for f in GOLDEN.iterdir()} & {*pass_names()})
CASES = [*zip(FOLDERS, FOLDERS, strict=True), ("async-collective-creator", "all-gather-combiner")]
OPTIONS: dict[str, dict[str, object]] = {
    "async-collective-creator": {**ALL_COLLECTIVES},
    "memory-search": {"target": "h100_sxm", "iterations": 2, "memory_limit": 64},
    "overlap-search": {"target": "h100_sxm", "iterations": 2},
    "rematerialization": {"memory_limit_bytes": 0, "recompute": True},
}


def annotated(text: str) -> Module:
    """A module that says of each array in it that it is replicated, and where it is from."""
    module = parse_module(text)
    for value in module.instructions():
        if value.shape.is_array:
            value.set_attribute("origin", f'{{{{"{value.name}"}}}}')
            value.set_attribute("sharding", "{replicated}")
    return module


@pytest.mark.parametrize(("name", "folder"), CASES)
def test_modules_with_annotated_values_stay_valid(name: str, folder: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((GOLDEN / folder).glob("*.hlo"))]
    modules = [module for module in map(annotated, texts) if verify_module(module) == []]
    assert modules
    options = VerifierOptions(allow_mixed_precision=name in MIX_PRECISIONS)
    for module in modules:
        with suppress(PassRefused):
            create_pass(name, OPTIONS.get(name)).run(module, PassContext(name))
        assert verify_module(parse_module(print_module(module)), options) == []
