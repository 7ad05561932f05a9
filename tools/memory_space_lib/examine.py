"""Run memory space assignment on a text and hold the result to all laws."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from time import perf_counter

from hloopt.equivalence import Reference, RunSettings
from hloopt.ir import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.memory_space.memory_space_assignment import MemorySpaceAssignment
from hloopt.passes.memory_space.report import MemorySpaceReport
from hloopt.text import PrintOptions, parse_module, print_module
from memory_space_lib.checker import check
from memory_space_lib.faults import Fault, Kind

NAME = "memory-space-assignment"
_FULL = PrintOptions(print_large_constants=True)
_MOST_STEPS, _MOST_MEMORY = 200_000, 1 << 28
"""Of a run in the interpreter."""


@dataclass(slots=True)
class Result:
    """A module after the pass, and what is wrong with it."""

    module: Module
    report: MemorySpaceReport
    changed: bool
    seconds: float
    """Of the pass, the first time."""
    faults: list[Fault] = field(default_factory=list)


def assign(text: str, options: Mapping[str, object]) -> Result:
    """Run the pass once and check what comes of it, without running the module."""
    before, module = parse_module(text), parse_module(text)
    made = create_pass(NAME, options)
    assert isinstance(made, MemorySpaceAssignment)
    start = perf_counter()
    changed = made.run(module, PassContext())
    seconds = perf_counter() - start
    report = made.report or MemorySpaceReport()
    result = Result(module, report, changed, seconds)
    result.faults += check(before, module, made.options, report)
    return result


def differences(
    text: str, options: Mapping[str, object], result: Result, seeds: int = 2
) -> Iterator[Fault]:
    """Compare a result with that of another run of the pass, and with the module before.

    Raises RunError where the module cannot be run.
    """
    printed = print_module(result.module, _FULL)
    again = parse_module(text)
    create_pass(NAME, options).run(again, PassContext())
    if print_module(again, _FULL) != printed:
        yield Fault(Kind.UNSTABLE, "the second run makes another module")
    settings = RunSettings(seeds=seeds, steps=_MOST_STEPS, memory=_MOST_MEMORY)
    mismatch = Reference(parse_module(text), settings).compare(parse_module(printed), "bits")
    if mismatch is not None:
        yield Fault(Kind.DIFFERENT, mismatch.reason)
