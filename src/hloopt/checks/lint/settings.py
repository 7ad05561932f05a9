"""The settings of lint: the rules that run, their options, and what they are silent about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import NamedTuple

from hloopt.checks.lint.model import Rule, RuleOptions
from hloopt.checks.lint.selection import ALL, has, selected
from hloopt.checks.view import MOST_GUESSED
from hloopt.cost_models import CostModelName


class Ignore(NamedTuple):
    """Rules that say nothing about what has a name: a module's, or the op_name of instructions."""

    pattern: str
    """A pattern as a shell has them."""
    selectors: tuple[str, ...]

    def covers(self, name: str, rule: Rule) -> bool:
        """Whether a rule says nothing about what has this name."""
        return fnmatchcase(name, self.pattern) and has(self.selectors, rule)


@dataclass(frozen=True, slots=True)
class LintSettings:
    """The settings of a run of lint."""

    select: tuple[str, ...] = (ALL,)
    ignore: tuple[str, ...] = ()
    options: Mapping[str, RuleOptions] = field(default_factory=dict)
    """Options by the code of their rule; rules without have their defaults."""
    per_op_name_ignores: Sequence[Ignore] = ()
    per_module_ignores: Sequence[Ignore] = ()
    target: str | None = None
    """The hardware, where the command line names none."""
    cost_model: CostModelName | None = None
    max_guessed: float = MOST_GUESSED

    def options_of(self, rule: Rule) -> RuleOptions:
        return self.options.get(rule.code) or rule.options()

    def rules(self, module: str) -> list[Rule]:
        """The rules that run on a module of a name.

        A rule whose option has nothing to compare with does not run.
        """
        return [
            rule
            for rule in selected(self.select, self.ignore)
            if not any(ignore.covers(module, rule) for ignore in self.per_module_ignores)
            and (not rule.compares_with or self._has_value(rule))
        ]

    def _has_value(self, rule: Rule) -> bool:
        return getattr(self.options_of(rule), rule.compares_with) is not None

    def is_silent(self, rule: Rule, op_name: str) -> bool:
        """Whether a rule says nothing about instructions of an op_name."""
        return any(ignore.covers(op_name, rule) for ignore in self.per_op_name_ignores)
