"""Memory space assignment keeps its laws on the modules of XLA's own tests."""

from __future__ import annotations

from pathlib import Path

from conformance_lib.options import pass_options
from conformance_lib.records import Record, read_table
from hloopt.diagnostics import HloError
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.memory_space.memory_space_assignment import MemorySpaceAssignment
from hloopt.passes.memory_space.report import MemorySpaceReport
from hloopt.text import parse_module
from memory_space_lib.checker import check
from memory_space_lib.examine import NAME

KNOWN = {
    "WindowPrefetchSchedule": "the record asks for more scoped memory than there is",
}
"""Records that break a law, by the last part of their ids."""


def test_records_keep_the_laws(shared: Path) -> None:
    table = read_table(shared / "conformance" / "memory_space_assignment.jsonl")
    broken = {}
    for record in table:
        if record.pass_name == NAME and record.skip is None:
            faults = faults_of(record)
            if faults:
                broken[record.id.rpartition("/")[2]] = faults
    new = {name: faults for name, faults in broken.items() if name not in KNOWN}
    assert new == {}
    assert broken.keys() == KNOWN.keys(), "mended: take it out of the list"


def faults_of(record: Record) -> list[str]:
    """What is wrong with the result of a record; nothing where the pass refuses it."""
    before, after = (prepared(record) for _ in range(2))
    (main,) = (step for step in record.steps() if step.phase == "main")
    made = create_pass(NAME, pass_options(NAME, main.options, record.config))
    assert isinstance(made, MemorySpaceAssignment)
    try:
        made.run(after, PassContext())
    except HloError:
        return []
    report = made.report or MemorySpaceReport()
    return list(map(str, check(before, after, made.options, report)))


def prepared(record: Record) -> Module:
    """The module that the pass gets."""
    module = parse_module(record.hlo)
    for step in record.steps():
        if step.phase == "before":
            create_pass(step.pass_name, step.options).run(module, PassContext())
    return module
