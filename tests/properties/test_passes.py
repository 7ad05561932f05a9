"""Laws of passes: honest claims, valid and consistent results, nothing left for a second run."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.properties.consistency import assert_consistent
from tests.properties.laws import (
    ALWAYS_CHANGE,
    CASES,
    CHANGE_NOTHING,
    CHANGES_FEW,
    FULL,
    MAY_REFUSE,
    NOT_IN_THE_CORPUS,
    SLOW,
    Subject,
    assert_laws,
    prepare,
    run,
)
from tests.properties.strategies.modules import module_texts

from corpus import CorpusEntry
from hloopt.diagnostics import HloError
from hloopt.pass_framework.registry import PASSES
from hloopt.text import parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module
from pass_sweep_lib.options import OPTIONS


def test_every_pass_is_held_to_the_laws() -> None:
    assert OPTIONS.keys() == PASSES.keys()


@pytest.mark.parametrize(("name", "options"), CASES)
@given(text=module_texts())
@settings(max_examples=40)
def test_passes_obey_the_laws(name: str, options: dict[str, Any], text: str) -> None:
    assert verify_module(parse_module(text), ANY_TARGET) == []
    assert_laws(name, options, Subject(text))


@given(module_texts(), st.permutations(CASES))
@settings(max_examples=40)
def test_passes_obey_the_laws_after_each_other(
    text: str, cases: list[tuple[str, dict[str, Any]]]
) -> None:
    module = parse_module(text)
    for name, options in cases:
        prepare(name, module)
        before = print_module(module, FULL)
        try:
            changed = run(name, options, module)
        except HloError:
            assert name in MAY_REFUSE
            return
        is_other = print_module(module, FULL) != before
        assert changed if name in ALWAYS_CHANGE else changed == is_other
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


_GROUPS = [CASES[start::8] for start in range(8)]
"""Cases that share the reading of the corpus."""


@pytest.mark.slow
@pytest.mark.parametrize("cases", _GROUPS, ids=lambda cases: ",".join(name for name, _ in cases))
def test_passes_obey_the_laws_on_the_corpus(
    cases: list[tuple[str, dict[str, Any]]], corpus_entries: list[CorpusEntry]
) -> None:
    failures: list[str] = []
    changed = [0] * len(cases)
    for place, entry in enumerate(corpus_entries):
        if entry.verdict != "ok" or entry.facts["instructions"] >= 300:
            continue
        text = entry.text()
        if verify_module(parse_module(text)):
            continue  # XLA reads it, but no pass need cope with it
        subject = Subject(text)
        for number, (name, options) in enumerate(cases):
            if place % SLOW.get(name, 1):
                continue
            try:
                changed[number] += assert_laws(name, options, subject)
            except HloError as error:
                if name not in MAY_REFUSE:
                    failures.append(f"{name} {options}, {entry.id}: {error.message}")
            except AssertionError as error:
                failures.append(f"{name} {options}, {entry.id}: {error}")
    assert failures == []
    idle = [
        case
        for case, count in zip(cases, changed, strict=True)
        if case[0] not in (*CHANGE_NOTHING, *NOT_IN_THE_CORPUS)
        and count < (1 if case in CHANGES_FEW else 6)
    ]
    assert idle == [], "these change hardly anything"
