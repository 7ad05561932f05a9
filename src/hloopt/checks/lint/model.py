"""Rules of lint: what a rule is, what it needs of a module, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from hloopt.checks.doubts import Doubt
from hloopt.checks.results import NO_IMPACT, Impact, Severity
from hloopt.checks.view import View
from hloopt.explanations import explain
from hloopt.ir.instruction import Instruction
from hloopt.options import PassOptions


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that a rule found in a module."""

    message: str
    """A clause about the instruction: "%all-reduce.3 has groups of one device"."""
    instruction: Instruction | None = None
    """The place of it; None where it is about the module."""
    impact: Impact = NO_IMPACT
    help: str = ""
    """A sentence on what to do; empty where the page of the rule says enough."""
    related: tuple[Instruction, ...] = ()
    """Other instructions that it is about."""
    severity: Severity | None = None
    """The weight of this one; None for that of the rule."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOptions(PassOptions):
    """Base of the options of a rule: a dataclass whose fields are made by `option`."""


_Options = TypeVar("_Options", bound=RuleOptions)
Need: TypeAlias = Callable[[View], Doubt | None]
"""The reason why figures that a rule rests on allow no verdict; None where they do."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule. The page that `hloopt explain CODE` prints has its title and text."""

    code: str
    """`HLL` and three digits; the first one is of its subject."""
    name: str
    """A name in kebab-case, by which options and selections may call it."""
    severity: Severity
    needs: tuple[Need, ...]
    """The first that has a doubt keeps the rule from running."""
    options: type[RuleOptions]
    compares_with: str
    """The option without which it has nothing to compare with, so that it does not run; or ""."""
    find: Callable[[View, Any], Iterable[Finding]]
    """Yields the findings of the rule in a module, by the options."""

    @property
    def title(self) -> str:
        """The subject in a few words. Reads the page of the rule."""
        explanation = explain(self.code)
        assert explanation is not None, f"{self.code} has no page"
        return explanation.title

    def summary(self) -> dict[str, str]:
        """The rule in lists for programs."""
        return {
            "code": self.code,
            "name": self.name,
            "title": self.title,
            "severity": self.severity.value,
        }

    def doubt(self, view: View) -> Doubt | None:
        """The first reason why the rule has no verdict on a module."""
        return next(filter(None, (need(view) for need in self.needs)), None)


def rule(
    code: str,
    name: str,
    *needs: Need,
    options: type[_Options] = RuleOptions,  # type: ignore[assignment]  # for rules without
    severity: Severity = Severity.WARNING,
    compares_with: str = "",
) -> Callable[[Callable[[View, _Options], Iterable[Finding]]], Rule]:
    """Make a function the rule of a code.

    It is called with a view of the module, of which no need has a doubt, and the options.
    """

    def make(find: Callable[[View, _Options], Iterable[Finding]]) -> Rule:
        return Rule(code, name, severity, needs, options, compares_with, find)

    return make
