"""Laws of passes: honest claims, valid and consistent results, nothing left for a second run."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import Sample
from tests.properties.consistency import assert_consistent
from tests.properties.laws import (
    ALWAYS_CHANGE,
    CASES,
    CHANGE_NOTHING,
    CHANGES_FEW,
    FULL,
    GROUPS,
    MAY_REFUSE,
    NOT_IN_THE_CORPUS,
    SLOW,
    Case,
    Subject,
    assert_all_laws,
    assert_laws,
    names_of,
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


@pytest.mark.parametrize("cases", GROUPS, ids=names_of)
@given(text=module_texts())
@settings(max_examples=40)
def test_passes_obey_the_laws(cases: list[Case], text: str) -> None:
    assert verify_module(parse_module(text), ANY_TARGET) == []
    assert_all_laws(cases, text)


@given(module_texts(), st.permutations(CASES))
@settings(max_examples=40)
def test_passes_obey_the_laws_after_each_other(text: str, cases: list[Case]) -> None:
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


_IN_A_SAMPLE = 600
"""Modules on which `make test-slow` runs each pass; `make test-whole` takes all."""


@cache
def valid_text(path: Path) -> str | None:
    """The text of a module if it is valid: others can be read by XLA, but no pass need cope with
    them."""
    text = path.read_text(encoding="utf-8")
    return None if verify_module(parse_module(text)) else text


@pytest.mark.slow
@pytest.mark.parametrize("cases", GROUPS, ids=names_of)
def test_passes_obey_the_laws_on_the_corpus(
    cases: list[Case], corpus_entries: list[CorpusEntry], sample: Sample
) -> None:
    """Small modules, in which each pass finds something to do if all are taken."""
    entries = enumerate(corpus_entries)
    small = [(p, e) for p, e in entries if e.verdict == "ok" and e.facts["instructions"] < 300]
    failures: list[str] = []
    changed = [0] * len(cases)
    for place, entry in sample.of(small, _IN_A_SAMPLE):
        text = valid_text(entry.path)
        if text is None:
            continue
        subject = Subject(text)
        # Those that change most come first: where one changes the module, those that did not are
        # run again on another.
        for number in sorted(range(len(cases)), key=lambda number: -changed[number]):
            name, options = cases[number]
            if place % SLOW.get(name, 1):
                continue
            try:
                changed[number] += assert_laws(name, options, subject)
            except HloError as error:
                if name not in MAY_REFUSE:
                    failures.append(f"{name} {options}, {entry.id}: {error.message}")
            except AssertionError as error:
                failures.append(f"{name} {options}, {entry.id}: {error}")
        try:
            subject.assert_untouched()
        except AssertionError as error:
            failures.append(f"{entry.id}: {error}")
    assert failures == []
    idle = [
        case
        for case, count in zip(cases, changed, strict=True)
        if case[0] not in (*CHANGE_NOTHING, *NOT_IN_THE_CORPUS)
        and count < (1 if case in CHANGES_FEW else 6)
    ]
    assert not sample.is_whole or idle == [], "these change hardly anything"
