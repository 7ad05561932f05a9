"""Expectations about what memory space assignment reports: one that holds, one that does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from conformance_lib.memory_space.pass_options import FakeRepacker
from conformance_lib.records import Record
from conformance_lib.runner import run_record
from hloopt.ir import Module
from hloopt.memory_space.heap.repacking import RepackBlock
from hloopt.pass_framework.base import PassContext
from hloopt.passes.memory_space.report import MemorySpaceReport, PlacedChunk

TEXT = """HloModule m, is_scheduled=true
ENTRY e {
  p = f32[8]{0} parameter(0)
  q = f32[8]{0:S(1)} parameter(1)
  start1 = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) copy-start(p)
  n = f32[8]{0:S(1)} negate(q)
  start2 = (f32[8]{0}, f32[8]{0:S(1)}, u32[]) copy-start(n)
  d1 = f32[8]{0:S(1)} copy-done(start1)
  d2 = f32[8]{0} copy-done(start2)
  start3 = (f32[8]{0:S(1)}, f32[8]{0}, u32[]) copy-start(d2)
  x = f32[8]{0} negate(d1)
  d3 = f32[8]{0:S(1)} copy-done(start3)
  ROOT r = f32[8]{0} add(d3, x)
}
"""
PLACES = {"q": 0, "n": 32, "start1": 64, "d1": 64, "d3": 0}


@dataclass
class Options:
    repacker: object = None


@dataclass
class Reporting:
    """A pass that changes nothing, and reports what it is told."""

    edit: Callable[[Module, MemorySpaceReport], None]
    report: MemorySpaceReport = field(default_factory=MemorySpaceReport)
    options: Options = field(default_factory=Options)

    def run(self, module: Module, context: PassContext) -> bool:
        for instruction in module.entry.instructions:
            if instruction.name in PLACES:
                index = (0,) if instruction.shape.is_tuple else ()
                place = PlacedChunk(instruction, index, PLACES[instruction.name], 32)
                self.report.chunks.append(place)
        self.report.scoped |= {"n": (96, 16)}
        self.report.post_module_chunk = (0, 24)
        repacker = FakeRepacker([[1, 0, 8]], always_modified=False)
        repacker([RepackBlock(0, 1, 8, 0, "a"), RepackBlock(1, 2, 8, 0, "a"), RepackBlock(3, 4, 8)])
        self.options.repacker = repacker
        self.edit(module, self.report)
        return True


def nothing(module: Module, report: MemorySpaceReport) -> None:
    pass


def failures(
    *expect: dict[str, Any],
    text: str = TEXT,
    edit: Callable[[Module, MemorySpaceReport], None] = nothing,
    **options: object,
) -> list[str]:
    options = {"alternate_memory_space": 1} | options
    fields: dict[str, Any] = {"id": "t", "pass": "memory-space-assignment", "hlo": text}
    fields |= {"options": options, "expect": [*expect]}
    return run_record(Record("t", fields), lambda name, options: Reporting(edit)).failures


HOLDS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"post_module_chunk_size": 24}, {"post_module_chunk_size": 0}),
    ({"chunk_count": 5}, {"chunk_count": "<5"}),
    ({"has_offset": ["%q", "%d1"]}, {"has_offset": ["%q", "%p"]}),
    ({"no_offset": ["%p", "%x"]}, {"no_offset": ["%p", "%q"]}),
    ({"same_offset": [["%start1", "%d1"]]}, {"same_offset": [["%q", "%n"]]}),
    ({"different_offset": [["%q", "%n"]]}, {"different_offset": [["%q", "%d3"]]}),
    (
        {"some_offset": {"opcode": "negate", "offset": 32}},
        {"some_offset": {"opcode": "negate", "offset": 64}},
    ),
    ({"chunk_of_copy": {"%p": [64, 32]}}, {"chunk_of_copy": {"%p": [64, 16]}}),
    ({"chunk_of_copy": {"%d2": [0, 32]}}, {"chunk_of_copy": {"%n": [0, 32]}}),
    ({"scoped_chunks": {"n": [96, 16]}}, {"scoped_chunks": {"n": [96, 8]}}),
    ({"scoped_chunks": {"n": [96, 16]}}, {"scoped_chunks": {"x": [96, 16]}}),
    ({"no_scoped_chunks": ["x", "r"]}, {"no_scoped_chunks": ["x", "n"]}),
    ({"no_scoped_chunks": ["x"]}, {"no_scoped_chunks": True}),
    ({"repacked_colocations": [[2], [1, 2], [1]]}, {"repacked_colocations": [[2], [1], [1]]}),
    ({"repacked_colocations": [[2], [2], [1]]}, {"repacked_colocations": [[2], [2]]}),
    ({"max_outstanding_copies": {"prefetches": 1}}, {"max_outstanding_copies": {"prefetches": 2}}),
    (
        {"max_outstanding_copies": {"evictions": "<=1"}, "in": "entry"},
        {"max_outstanding_copies": {"evictions": "<=0"}},
    ),
    (
        {"max_live_values": {"memory_space": 1, "n": 3}},
        {"max_live_values": {"memory_space": 1, "n": 2}},
    ),
    ({"no_alternate_memory": ["%x.op(0).op(0).op(0)"]}, {"no_alternate_memory": ["%x"]}),
]


@pytest.mark.parametrize(("holds", "fails"), HOLDS)
def test_expectations_hold_or_do_not(holds: dict[str, Any], fails: dict[str, Any]) -> None:
    assert failures(holds) == []
    found = failures(fails)
    assert found
    assert all(message.startswith(next(iter(fails))) for message in found)


@pytest.mark.parametrize(
    "vacuous", [{"same_offset": [["%p", "%x"]]}, {"different_offset": [["%p", "%q"]]}]
)
def test_a_comparison_of_places_needs_places(vacuous: dict[str, Any]) -> None:
    (message,) = failures(vacuous)
    assert "%p has no place in alternate memory" in message


@pytest.mark.parametrize(
    "wrong", [{"no_scoped_chunks": []}, {"no_scoped_chunks": {"n": 1}}, {"has_offset": []}]
)
def test_forms_that_say_nothing_are_refused(wrong: dict[str, Any]) -> None:
    assert failures(wrong)


RULES: list[tuple[dict[str, Any], bool]] = [
    ({"names": ["n"]}, True),
    ({"opcodes": ["negate"]}, True),
    ({"opcodes": ["add"]}, False),
    ({"names": ["x"]}, False),
    ({"names": ["n"], "no_operand_in_alternate_memory": True}, False),
    ({"names": ["n"], "no_output_in_alternate_memory": True}, False),
]


@pytest.mark.parametrize(("rule", "applies"), RULES)
def test_scoped_sizes_follow_options(rule: dict[str, Any], applies: bool) -> None:
    rules = [rule | {"bytes": 10}, {"names": ["n"], "bytes": 6}]
    found = failures({"scoped_sizes_follow_options": ["n"]}, reserved_scoped_memory=rules)
    assert (found == []) == applies


def move_parameter(module: Module, report: MemorySpaceReport) -> None:
    parameter = module.entry.parameters[0]
    parameter.shape = module.entry.parameters[1].shape


def move_result(module: Module, report: MemorySpaceReport) -> None:
    module.entry.root.shape = module.entry.parameters[1].shape


def repeat_chunk(module: Module, report: MemorySpaceReport) -> None:
    report.chunks.append(report.chunks[0])


def misplace_chunk(module: Module, report: MemorySpaceReport) -> None:
    report.chunks.append(PlacedChunk(module.entry.parameters[0], (), 128, 32))


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (move_parameter, "%p is in alternate memory"),
        (move_result, "the result is in alternate memory"),
        (repeat_chunk, "%q has two chunks"),
        (misplace_chunk, "%p has a chunk but is not in alternate memory"),
    ],
)
def test_a_plan_is_not_in_order(
    edit: Callable[[Module, MemorySpaceReport], None], message: str
) -> None:
    assert failures({"memory_plan_ok": True}) == []
    assert any(message in found for found in failures({"memory_plan_ok": True}, edit=edit))


def test_alternate_memory_in_a_computation() -> None:
    text = """HloModule m, is_scheduled=true
f { a = f32[8]{0} parameter(0)
  ROOT b = f32[8]{0} negate(a) }
g { c = f32[8]{0} parameter(0)
  d = f32[8]{0:S(1)} negate(c)
  ROOT h = f32[8]{0} negate(d) }
ENTRY e { p = f32[8]{0} parameter(0)
  x = f32[8]{0} call(p), to_apply=f
  ROOT y = f32[8]{0} call(x), to_apply=g }
"""
    assert failures({"no_alternate_memory_in": ["f"]}, text=text) == []
    assert failures({"no_alternate_memory_in": ["f", "g"]}, text=text)


def test_a_pass_without_a_report_cannot_be_asked() -> None:
    fields = {"id": "t", "pass": "dce", "hlo": TEXT, "expect": [{"chunk_count": 0}]}

    class Silent:
        def run(self, module: Module, context: PassContext) -> bool:
            return False

    (message,) = run_record(Record("t", fields), lambda name, options: Silent()).failures
    assert "the pass reports no assignment of memory spaces" in message
