"""Reduce a module: edits, coarse to fine, as long as the module gets smaller."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import NamedTuple

from hloopt.collector import collector_paused
from hloopt.diagnostics import HloError, Source
from hloopt.ir.module import Module
from hloopt.ir.shapes.shape import Shape
from hloopt.reduction.edits.attributes import DropAttributeKinds, DropAttributes
from hloopt.reduction.edits.constants import LowerConstants
from hloopt.reduction.edits.dimensions import LowerSizes
from hloopt.reduction.edits.edit import Count, Edit
from hloopt.reduction.edits.entries import KeepComputation
from hloopt.reduction.edits.focus import Focus
from hloopt.reduction.edits.inlining import Inline
from hloopt.reduction.edits.names import ShortNames
from hloopt.reduction.edits.passes import RunPasses
from hloopt.reduction.edits.removal import RemoveInstructions
from hloopt.reduction.edits.replacement import (
    DropOutputs,
    KeepOneResult,
    ReplaceByEarlier,
    ReplaceByOperand,
)
from hloopt.reduction.edits.session import EditSession
from hloopt.reduction.edits.sizes import FewerDevices, PlainTypes, ShrinkDimensions
from hloopt.reduction.edits.slots import (
    DropBranchElements,
    DropElements,
    DropParameters,
    UnwrapElements,
)
from hloopt.reduction.edits.substitutes import NotApplicable
from hloopt.reduction.minimize import remove_parts
from hloopt.reduction.outcomes import Outcome
from hloopt.reduction.trials import Trials
from hloopt.text import parse_module, print_module
from hloopt.verifier import verify_module

EDITS: tuple[Edit, ...] = (
    RunPasses(),
    ShrinkDimensions(),
    DropAttributeKinds(),
    RemoveInstructions(),
    KeepComputation(),
    DropOutputs(),
    KeepOneResult(),
    Inline(),
    DropElements(),
    UnwrapElements(),
    DropBranchElements(),
    DropParameters(),
    RemoveInstructions(sweeps=False),
    ReplaceByOperand(),
    ReplaceByEarlier(),
    LowerSizes(1),
    LowerSizes(2),
    LowerConstants(1),
    LowerConstants(0),
    FewerDevices(),
    PlainTypes(),
    DropAttributes(),
    # Callers that share a computation change together only: before the end that would be a bar.
    RunPasses(("computation-deduplicator",)),
)
"""The edits of a round, coarse to fine; rounds go on until one changes nothing."""
LAST_EDITS: tuple[Edit, ...] = (ShortNames(),)


class Size(NamedTuple):
    """The size of a module: what a reduction makes smaller, the first figure first."""

    instructions: int
    elements: int
    """Of all arrays together."""
    characters: int


class Progress(NamedTuple):
    """How far a reduction is."""

    size: Size
    trials: int
    seconds: float


@dataclass
class Reduction:
    """The result of a reduction."""

    text: str
    before: Size
    after: Size
    failure: Outcome
    """The failure of the result: of the signature of the input's, with its own values."""
    removed: Counter[Count] = field(default_factory=Counter)
    """Parts that went, by what they are."""
    others: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Other failures that were met, by signature: how often, and the smallest module."""
    rounds: int = 0
    is_complete: bool = True
    """False where the budget ran out."""


class OutOfBudget(Exception):
    """The time that a reduction may take is over."""


class Reducer:
    """Makes a module smaller that shows a failure, and keeps showing it.

    Every accepted module is smaller than the one before, verifies (where the predicate needs that),
    and shows a failure of the same signature. The steps are a function of module and predicate
    alone.
    """

    def __init__(
        self,
        trials: Trials,
        failure: Outcome,
        *,
        verify: bool = True,
        deadline: float | None = None,
        on_smaller: Callable[[str, Outcome], None] | None = None,
        on_trial: Callable[[Progress], None] | None = None,
    ) -> None:
        self._trials = trials
        self._failure = failure
        self._focus = Focus(failure.about)
        self._verify = verify
        self._deadline = deadline
        self._on_smaller = on_smaller
        self._on_trial = on_trial
        self._started = time.monotonic()

    def reduce(self, text: str) -> Reduction:
        """Reduce a module that shows the failure. Raises HloError where it is not HLO."""
        before = size_of(parse_module(Source("<module>", text)), text)
        self._result = Reduction(text, before, before, self._failure)
        try:
            self._rounds()
            if not self._trials.outcome(self._result.text, again=True).is_shown:
                # Perhaps a slow candidate was taken for one that hangs.
                self._trials.take_time()
                self._result = Reduction(text, before, before, self._failure)
                self._rounds()
        except OutOfBudget:
            self._result.is_complete = False
        return self._result

    def _rounds(self) -> None:
        self._make(RunPasses(("dce",)))
        self._attempt(self._focus, [[part] for part in self._focus.parts(self._module())])
        is_changed = True
        while is_changed:
            self._result.rounds += 1
            is_changed = False
            for edit in EDITS:
                is_changed |= self._make(edit)
        for edit in LAST_EDITS:
            self._make(edit)

    def _make(self, edit: Edit) -> bool:
        def parts() -> Sequence[Hashable]:
            return edit.parts(self._module())

        return remove_parts(parts, partial(self._attempt, edit), one_by_one=edit.one_by_one)

    def _attempt(self, edit: Edit, groups: Sequence[Sequence[Hashable]]) -> int | None:
        """The number of the first group of parts that can go, and goes; None if there is none."""
        found = self._trials.first(self._candidates(edit, groups), self._accept)
        if found is not None:
            self._result.removed[edit.what] += len(groups[found])
        return found

    def _module(self) -> Module:
        return parse_module(Source("<module>", self._result.text))

    def _candidates(self, edit: Edit, groups: Sequence[Sequence[Hashable]]) -> Iterator[str | None]:
        for group in groups:
            if self._deadline is not None and time.monotonic() > self._deadline:
                raise OutOfBudget
            if self._on_trial is not None:
                elapsed = time.monotonic() - self._started
                self._on_trial(Progress(self._result.after, self._trials.count, elapsed))
            yield self._candidate(edit, group)

    def _candidate(self, edit: Edit, group: Sequence[Hashable]) -> str | None:
        """The module without a group of parts; None where it is invalid, or not smaller."""
        with collector_paused():
            session = EditSession(self._module())
            try:
                edit.apply(session, {*group})
                session.finish()
                text = print_module(session.module)
                if size_of(session.module, text) >= self._result.after:
                    return None
                session.module.source = None  # nobody looks at the places of problems
                if self._verify and verify_module(session.module):
                    return None
            except (NotApplicable, HloError):
                return None
            return text

    def _accept(self, text: str, outcome: Outcome) -> bool:
        if not outcome.is_shown:
            return False
        if outcome.signature != self._failure.signature:
            count, smallest = self._result.others.get(outcome.signature, (0, text))
            smallest = min(smallest, text, key=len)
            self._result.others[outcome.signature] = count + 1, smallest
            return False
        self._result.text, self._result.failure = text, outcome
        self._result.after = size_of(self._module(), text)
        self._trials.allow_steps_of(outcome)
        if self._on_smaller is not None:
            self._on_smaller(text, outcome)
        return True


def size_of(module: Module, text: str) -> Size:
    """The size of a module with its text. O(instructions)."""
    elements = sum(map(_elements, (i.shape for i in module.instructions())))
    return Size(module.instruction_count(), elements, len(text))


@cache
def _elements(shape: Shape) -> int:
    return sum(leaf.element_count() for leaf in shape.leaves() if leaf.is_array)
