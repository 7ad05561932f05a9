"""Laws of passes: honest claims, valid and consistent results, nothing left for a second run."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.consistency import assert_consistent
from tests.properties.modules import module_texts

from corpus import CorpusEntry
from hloopt.ir import Module
from hloopt.passes.base import PassContext
from hloopt.passes.registry import PASSES, create_pass
from hloopt.text import PrintOptions, parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "call-inliner": [{}, {"single_call_site": True, "update_domain": True}],
    "cse": [{}, {"is_layout_sensitive": True, "ignore_control_dependencies": True}],
    "dce": [
        {},
        {"remove_cross_partition_collective_ops": True},
        {"use_call_analysis": True, "remove_dead_parameters_from_entry_computation": True},
    ],
    "flatten-call-graph": [{}, {"skip_cloning": "call-only"}],
    "propagate-call-metadata": [{}],
    "tuple-simplifier": [{}, {"exclude_entry_computation": True}],
}
LEAVES_MORE_TO_DO = [
    # Callers are visited before the callees whose effects and parameters go.
    ("dce", {"remove_cross_partition_collective_ops": True}),
    ("dce", {"use_call_analysis": True, "remove_dead_parameters_from_entry_computation": True}),
    # Two calls of one computation each put their name in front of the other's.
    ("propagate-call-metadata", {}),
]
"""What need not be done after one run."""
CASES = [(name, options) for name, choices in OPTIONS.items() for options in choices]
DEFAULT = PrintOptions.formatted()._replace(keep_order=False)


def run(name: str, options: dict[str, Any], module: Module) -> bool:
    return create_pass(name, options).run(module, PassContext(name))


def blocks(text: str) -> list[str]:
    """The parts of a printed module, without the numbers in names that readers make up."""
    return sorted(_MADE_UP.sub(r"\1", text).split("\n\n"))


_MADE_UP = re.compile(r"\b(async_wrapped|async_param|call)\.\d+")


def assert_laws(name: str, options: dict[str, Any], text: str) -> bool:
    """Run a pass on a module and again on the result; whether the first run changed anything."""
    module = parse_module(text)
    assert verify_module(module, ANY_TARGET) == []
    before, version = print_module(module, DEFAULT), module.version
    changed = run(name, options, module)
    after = print_module(module, DEFAULT)
    assert changed == (after != before)
    assert changed == (module.version != version)
    assert_consistent(module)
    assert verify_module(module, ANY_TARGET) == []
    again = print_module(parse_module(print_module(module)), DEFAULT)
    assert blocks(again) == blocks(after)
    if (name, options) not in LEAVES_MORE_TO_DO:
        assert not run(name, options, module), "a second run finds something"
        assert print_module(module, DEFAULT) == after
    return changed


def test_every_pass_is_held_to_the_laws() -> None:
    assert OPTIONS.keys() == PASSES.keys()


@pytest.mark.parametrize(("name", "options"), CASES)
@given(text=module_texts())
@settings(max_examples=40)
def test_passes_obey_the_laws(name: str, options: dict[str, Any], text: str) -> None:
    assert_laws(name, options, text)


@given(module_texts(), st.permutations(CASES))
@settings(max_examples=40)
def test_passes_obey_the_laws_after_each_other(
    text: str, cases: list[tuple[str, dict[str, Any]]]
) -> None:
    module = parse_module(text)
    for name, options in cases:
        before = print_module(module, DEFAULT)
        assert run(name, options, module) == (print_module(module, DEFAULT) != before)
        assert_consistent(module)
        assert verify_module(module, ANY_TARGET) == []
    assert_consistent(parse_module(print_module(module)))


@given(module_texts())
@settings(max_examples=40)
def test_schedules_stay_complete_and_in_order(text: str) -> None:
    module = parse_module(text.replace("HloModule m\n", "HloModule m, is_scheduled=true\n"))
    order = {i: position for position, i in enumerate(module.instructions())}
    for name in ("tuple-simplifier", "cse", "dce"):
        run(name, {}, module)
        for computation in module.computations.values():
            kept = [order[i] for i in computation.instructions if i in order]
            assert kept == sorted(kept), f"{name} moved an instruction of {computation}"
    assert verify_module(module, ANY_TARGET) == []


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), CASES)
def test_passes_obey_the_laws_on_the_corpus(
    name: str, options: dict[str, Any], corpus_entries: list[CorpusEntry]
) -> None:
    failures: list[str] = []
    changed = 0
    for entry in corpus_entries:
        if entry.verdict != "ok" or entry.facts["instructions"] >= 300:
            continue
        if verify_module(parse_module(entry.text())):
            continue  # XLA reads it, but no pass need cope with it
        try:
            changed += assert_laws(name, options, entry.text())
        except AssertionError as error:
            failures.append(f"{entry.id}: {str(error).splitlines()[0]}")
    assert failures == []
    assert changed > 5
