"""A module under check as expectations see it: its reports by one model of time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

from hloopt.analysis.cost.runs import Runs, runs_with_parts
from hloopt.checks.subject import Subject
from hloopt.cost_models import CostModelChoice
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.query.facts import ModuleFacts

if TYPE_CHECKING:
    from hloopt.reports.schedule.findings import ScheduleFindings

MOST_GUESSED = 0.05
"""The share of the time of a run that may be guessed, unless somebody says otherwise."""
_FIELDS = {"cost_model": "name"}
"""The fields of a cost model that expectations call by another name."""
_Found = TypeVar("_Found")


@dataclass
class View:
    """A subject, the cost model that is meant, and how much of a time may be guessed."""

    subject: Subject
    cost_model: CostModelChoice = field(default_factory=CostModelChoice)
    most_guessed: float = MOST_GUESSED
    _made: dict[object, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, subject: Subject, most_guessed: float = MOST_GUESSED) -> View:
        """The view by the cost model of the subject."""
        return cls(subject, subject.cost_model, most_guessed)

    def under(self, arguments: tuple[tuple[str, str], ...]) -> View:
        """The view of the module by another cost model; it shares the reports that are made."""
        if not arguments:
            return self
        fields: dict[str, Any] = {_FIELDS.get(name, name): value for name, value in arguments}
        changed = replace(self.cost_model, **fields)
        return View(self.subject, changed, self.most_guessed, self._made)

    def trusting(self) -> View:
        """The view of the module that takes guessed times for known ones."""
        return View(self.subject, self.cost_model, 1.0, self._made)

    def once(self, key: object, make: Callable[[], _Found]) -> _Found:
        """The result of a function, which is called at the first question only."""
        if key not in self._made:
            self._made[key] = make()
        found: _Found = self._made[key]
        return found

    @property
    def schedule(self) -> ScheduleFindings:
        return self.subject.schedule_under(self.cost_model)

    @property
    def facts(self) -> ModuleFacts:
        return self.once("facts", lambda: ModuleFacts(self.subject.module))

    def runs(self, instruction: Instruction) -> Runs:
        """The number of times an instruction runs in one run of the module.

        Within a fusion, or what else is part of an instruction, that is how often its callers run.
        O(instructions) once.
        """
        return self._runs.get(instruction.parent, Runs(0, True))

    @cached_property
    def _runs(self) -> dict[Computation, Runs]:
        make = partial(runs_with_parts, self.subject.module, self.subject.costs)
        return self.once("runs", make)
