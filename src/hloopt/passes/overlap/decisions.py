"""Decisions on a module, each a pass with its options, and what becomes of the module by them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hloopt.diagnostics import PassRefused
from hloopt.ir.clone import clone_module
from hloopt.ir.module import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass
from hloopt.passes.overlap.options import Family

Options = tuple[tuple[str, object], ...]
PassRun = str | tuple[str, dict[str, Any]]
"""A pass by name, or by name and options."""

_TIDYING = ("tuple-simplifier", "cse", "dce")
_TRIP_COUNTS = "while-loop-trip-count-annotator"


@dataclass(frozen=True, slots=True)
class Decision:
    """One application of a pass to chosen instructions."""

    family: Family
    pass_name: str
    options: Options
    what: str
    """The decision in words."""
    is_late: bool = False
    """Whether it says how the program is finished, by options of a pass that schedules it or by a
    pass that runs after those."""


@dataclass(slots=True)
class Draft:
    """A module without a schedule whose collectives are synchronous, after some decisions."""

    module: Module
    decisions: tuple[Decision, ...] = ()
    trail: tuple[Module, ...] = field(default=(), repr=False)
    """The module before each decision."""

    def after(self, *changes: Decision) -> Draft | None:
        """The draft after more decisions; None where one of them that is not late changes nothing.

        O(instructions) for each, beside the passes.
        """
        draft = self
        for decision in changes:
            module = draft.module
            if not decision.is_late:
                module, _ = clone_module(module)
                if not _decide(module, decision):
                    return None
            before = (*draft.trail, draft.module)
            draft = Draft(module, (*draft.decisions, decision), before)
        return draft

    def without(self, place: int) -> Draft | None:
        """The draft without one decision; None where a later one cannot be made without it."""
        kept = Draft(self.trail[place], self.decisions[:place], self.trail[:place])
        return kept.after(*self.decisions[place + 1 :])

    def prefixes(self) -> list[Draft]:
        """The drafts with none of the decisions, with the first, with two, …, with all."""
        numbers = range(len(self.decisions))
        return [Draft(self.trail[n], self.decisions[:n], self.trail[:n]) for n in numbers] + [self]


def _decide(module: Module, decision: Decision) -> bool:
    made = create_pass(decision.pass_name, dict(decision.options))
    try:
        changed = made.run(module, PassContext(wants_remarks=False))
    except PassRefused:
        return False
    if changed:
        tidy(module)
    return changed


def tidy(module: Module) -> None:
    """Remove what a decision left behind; trip counts of loops are written again."""
    run_passes(module, (*_TIDYING, *_TIDYING, _TRIP_COUNTS))


def run_passes(module: Module, passes: Iterable[PassRun]) -> None:
    """Run passes without remarks."""
    for each in passes:
        name, options = (each, {}) if isinstance(each, str) else each
        create_pass(name, options).run(module, PassContext(wants_remarks=False))
