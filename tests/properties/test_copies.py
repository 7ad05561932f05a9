"""Copy insertion keeps what programs compute; no value is overwritten while it is needed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import Sample
from tests.properties.consistency import assert_consistent
from tests.properties.test_loops import loop_texts

from corpus import CorpusEntry
from hloopt.diagnostics import HloError
from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module, Opcode
from hloopt.ir.clone import clone_module
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.text import parse_module, print_module
from hloopt.verifier import ANY_TARGET, verify_module


def with_copies(text: str, **options: object) -> Module:
    """The module with copies inserted: valid, and each value kept for as long as it is needed."""
    module = parse_module(text)
    create_pass("copy-insertion", options).run(module, PassContext())
    assert verify_module(module, ANY_TARGET) == []
    assert_consistent(module)
    assert MemoryAnalysis.of(module).ranges.conflicts == 0
    return module


@given(loop_texts(), st.sampled_from((0, -1)))
@settings(max_examples=60, deadline=None)
def test_loops_with_copies_compute_the_same(text: str, regions: int) -> None:
    module = with_copies(text, use_region_based_live_range_analysis=regions)
    assert Reference(parse_module(text), RunSettings(seeds=2)).compare(module) is None


@given(loop_texts())
@settings(max_examples=40, deadline=None)
def test_copies_that_are_there_are_not_made_again(text: str) -> None:
    module = with_copies(text)
    again = with_copies(print_module(module))
    copies = [sum(1 for _ in m.instructions(Opcode.COPY)) for m in (module, again)]
    assert copies[1] <= copies[0]


@st.composite
def branch_texts(draw: st.DrawFn) -> str:
    """A conditional whose branches hand on, change or swap what they are given."""
    count = draw(st.integers(1, 3))
    shapes = ", ".join(["f32[4]"] * count)
    branches = []
    for name in ("first", "second"):
        elements = [f"g{i}" for i in range(count)]
        made = [f"  n{i} = f32[4] negate(g{i})" for i in range(count)]
        results = [draw(st.sampled_from((*elements, f"n{i}", "c"))) for i in range(count)]
        branches.append(
            "\n".join(
                [
                    f"{name} {{\n  p = ({shapes}) parameter(0)\n  c = f32[4] constant({{1,2,3,4}})",
                    *(f"  g{i} = f32[4] get-tuple-element(p), index={i}" for i in range(count)),
                    *made,
                    f"  ROOT r = ({shapes}) tuple({', '.join(results)})\n}}",
                ]
            )
        )
    starts = [draw(st.sampled_from(("x", "y", "k"))) for _ in range(count)]
    return "\n".join(
        [
            *("HloModule m", *branches, "ENTRY e {\n  b = pred[] parameter(0)"),
            "  x = f32[4] parameter(1)\n  y = f32[4] parameter(2)",
            "  k = f32[4] constant({5,6,7,8})",
            f"  s = ({shapes}) tuple({', '.join(starts)})",
            f"  ROOT c = ({shapes}) conditional(b, s, s), true_computation=first,"
            " false_computation=second\n}",
        ]
    )


@given(branch_texts())
@settings(max_examples=60, deadline=None)
def test_branches_with_copies_compute_the_same(text: str) -> None:
    module = with_copies(text)
    assert Reference(parse_module(text), RunSettings(seeds=3)).compare(module) is None


@pytest.mark.parametrize("name", ["remove-unnecessary-copies", "add-special-case-copies"])
@given(loop_texts())
@settings(max_examples=30, deadline=None)
def test_parts_of_copy_insertion_compute_the_same(name: str, text: str) -> None:
    module = parse_module(text)
    create_pass(name).run(module, PassContext())
    assert verify_module(module, ANY_TARGET) == []
    assert Reference(parse_module(text), RunSettings(seeds=2)).compare(module) is None


_MERGING = (Opcode.WHILE, Opcode.CONDITIONAL, Opcode.DYNAMIC_UPDATE_SLICE, Opcode.SCATTER)
_KEPT_BY_XLA = {
    # One fusion updates its operand in place for two results; XLA copies the operand once, too.
    "ir_emission_utils_test/CanEmitFusedDynamicUpdateSliceInPlace_"
    "HandlesMultiOutputFusionSharedParameter.0",
    # What a loop receives lies in the context that its next receive begins with.
    "hlo_parser_test/PipelinedSendRecv.0",
}


@pytest.mark.slow
def test_no_value_of_the_corpus_is_overwritten_while_it_is_needed(
    corpus_entries: list[CorpusEntry], sample: Sample
) -> None:
    """Modules that can be run compute the same with copies."""
    failures: list[str] = []
    conflicting: set[str] = set()
    checked = ran = 0
    small = [e for e in corpus_entries if e.verdict == "ok" and e.facts["instructions"] < 2_000]
    entries = sample.of(small, 1_500)
    for entry in entries:
        module = parse_module(entry.text())
        if verify_module(module):
            continue
        before, _ = clone_module(module)
        create_pass("flatten-call-graph").run(module, PassContext())
        create_pass("copy-insertion").run(module, PassContext())
        failures += [f"{entry.id}: {error.message}" for error in verify_module(module, ANY_TARGET)]
        if MemoryAnalysis.of(module).ranges.conflicts:
            conflicting.add(entry.id)
        checked += 1
        if entry.facts["instructions"] < 200 and any(
            i.opcode in _MERGING for i in before.instructions()
        ):
            bounds = RunSettings(seeds=1, steps=20_000, memory=1 << 22)
            try:
                mismatch = Reference(before, bounds).compare(module)
            except HloError:  # of the module as it was
                continue
            ran += 1
            if mismatch and mismatch.is_decided:
                failures.append(f"{entry.id}: {mismatch.reason}")
    assert failures == []
    assert conflicting <= _KEPT_BY_XLA
    assert checked > 0.8 * len(entries)
    assert ran > 0.04 * len(entries)
