"""Check one result of memory space assignment: `check` is the way in."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.ir import Module
from hloopt.memory_space.options.options import MemorySpaceOptions
from hloopt.passes.memory_space.report import MemorySpaceReport
from hloopt.verifier import ANY_TARGET, verify_module
from memory_space_lib.copy_laws import copies_are_waited_for, not_too_many_run, sources_stay
from memory_space_lib.faults import Fault, Kind
from memory_space_lib.place_laws import (
    chunks_are_right,
    colors_are_right,
    nothing_overlaps,
    places_fit,
)
from memory_space_lib.requirement_laws import requirements_are_kept
from memory_space_lib.subject import Faults, Subject
from memory_space_lib.timeline import Timeline

LAWS: tuple[Callable[[Subject], Faults], ...] = (
    chunks_are_right,
    colors_are_right,
    nothing_overlaps,
    places_fit,
    copies_are_waited_for,
    sources_stay,
    not_too_many_run,
    requirements_are_kept,
)
"""The laws that a result is held to."""


def check(
    before: Module, after: Module, options: MemorySpaceOptions, report: MemorySpaceReport
) -> list[Fault]:
    """Find what is wrong with `after`, made of `before`; both are scheduled. Near-linear.

    Nothing more is checked of a module with a broken order; of one that the verifier refuses only
    whether something reads copies early.
    """
    line = Timeline.of(after)
    if line.disorder:
        return [Fault(Kind.ORDER, text) for text in line.disorder]
    subject = Subject(before, line, options, report)
    if errors := verify_module(after, ANY_TARGET):
        invalid = [Fault(Kind.INVALID, error.message) for error in errors]
        return [*invalid, *copies_are_waited_for(subject)]
    return [fault for law in LAWS for fault in law(subject)]
