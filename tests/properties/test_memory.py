"""No two values that are needed at the same time share a byte, in whatever module."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.properties.strategies.modules import module_texts

from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.memory import analyze_memory
from hloopt.memory.assignment import BufferAssignment
from hloopt.memory.backends import CPU, GPU, Backend
from hloopt.memory.schedulers import Algorithm, schedule_module
from hloopt.memory.statistics import statistics_of
from hloopt.text import parse_module
from memory_lib.overlaps import overlaps

if TYPE_CHECKING:
    from corpus import CorpusEntry


def check(module: Module, backend: Backend, algorithm: Algorithm | None) -> None:
    """Assign buffers; values lie apart, and there is room for those that are alive."""
    orders = None if algorithm is None else schedule_module(module, algorithm).orders
    assignment = BufferAssignment.of(module, orders=orders, backend=backend)
    assert overlaps(assignment) == []
    statistics = statistics_of(assignment)
    assert statistics.fragmentation >= 0
    for allocation in assignment.allocations:
        for value, offset in allocation.offsets.items():
            assert 0 <= offset <= allocation.size - assignment.buffers.value_size(value)


@given(
    module_texts(),
    st.sampled_from((CPU, GPU)),
    st.sampled_from(list(Algorithm)),
)
def test_of_any_module_in_any_order(text: str, backend: Backend, algorithm: Algorithm) -> None:
    module = parse_module(text)
    check(module, backend, None if module.is_scheduled else algorithm)
    report = analyze_memory(module, backend=backend)
    assert sum(buffer.size for buffer in report.live_at_peak) == report.peak
    assert max(report.timeline) == report.peak


@given(module_texts(), st.sampled_from(list(Algorithm)))
def test_a_schedule_holds_every_instruction_behind_what_it_needs(
    text: str, algorithm: Algorithm
) -> None:
    for computation, order in schedule_module(parse_module(text), algorithm).orders.items():
        place = {instruction: number for number, instruction in enumerate(order)}
        assert place.keys() == set(computation.instructions)
        for instruction in order:
            for before in (*instruction.operands, *instruction.control_predecessors):
                assert place[before] < place[instruction]


@pytest.mark.slow
def test_of_all_scheduled_modules_of_the_corpus(corpus_entries: list[CorpusEntry]) -> None:
    checked = 0
    for entry in corpus_entries:
        if entry.verdict != "ok" or "is_scheduled=true" not in entry.text():
            continue
        try:
            module = parse_module(entry.text())
            check(module, CPU, None)
        except HloError:
            continue  # what is not a valid module
        checked += 1
    assert checked > 400
