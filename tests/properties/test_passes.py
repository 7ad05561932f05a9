"""Laws of passes: honest claims, valid and consistent results, nothing left for a second run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.consistency import assert_consistent
from tests.properties.laws import (
    CASES,
    CHANGES_FEW,
    FULL,
    MAY_REFUSE,
    OPTIONS,
    assert_laws,
    prepare,
    run,
)
from tests.properties.modules import module_texts

from corpus import CorpusEntry
from hloopt.diagnostics import HloError
from hloopt.passes.registry import PASSES
from hloopt.text import parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module


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
        prepare(name, module)
        before = print_module(module, FULL)
        assert run(name, options, module) == (print_module(module, FULL) != before)
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
        except HloError as error:
            if name not in MAY_REFUSE:
                failures.append(f"{entry.id}: {error.message}")
        except AssertionError as error:
            failures.append(f"{entry.id}: {error}")
    assert failures == []
    assert changed > (1 if (name, options) in CHANGES_FEW else 5)
