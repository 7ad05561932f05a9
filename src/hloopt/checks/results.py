"""Results of checks: a verdict for each check of each module, and the violations behind it.

Commands that check (`expect`, `lint`) make these; `hloopt.checks.formats` writes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

EXIT_FAILED = 1
EXIT_NO_VERDICT = 2


class Severity(Enum):
    """The weight of a violation; an exit code counts errors and warnings alike, notes never."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Verdict(Enum):
    """The answer of a check."""

    PASSED = "passed"
    FAILED = "failed"
    NONE = "no verdict"
    """The module is not at the stage that the figures are for: neither passed nor failed."""


@dataclass(frozen=True, slots=True)
class Location:
    """The place of an instruction: in the file, in the module, and in the program it is from."""

    file: str
    line: int | None = None
    """Counted from 1, as columns and ends; all four are None where the text has no such place."""
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None
    instruction: str = ""
    computation: str = ""
    op_name: str = ""
    source: str = ""
    """The line of the program: `model.py:120`."""
    made_by: str = ""
    """The instruction before the partitioner that made a collective, and the reason; empty where
    that was not asked for."""


@dataclass(frozen=True, slots=True, order=True)
class Impact:
    """The cost of a violation to one device in one run of the module; 0 where it is not known.

    Impacts are ordered by time, then by bytes.
    """

    seconds: float = 0.0
    """Time by the cost model that was asked for."""
    moved: int = 0
    """Bytes that go to other devices, or between memory and processor."""
    memory: int = 0
    """Bytes at the peak of memory."""


NO_IMPACT = Impact()


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that a check found."""

    code: str
    """The code of a rule, or the text of an expectation."""
    severity: Severity
    message: str
    location: Location
    """At least the file."""
    help: str = ""
    related: tuple[Location, ...] = ()
    """Other instructions that it is about."""
    impact: Impact = NO_IMPACT


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a module, with its verdict."""

    name: str
    """The code of a rule, or the text of an expectation."""
    title: str
    """The subject of the check, in a line."""
    verdict: Verdict
    violations: tuple[Violation, ...] = ()
    reason: str = ""
    """The reason why there is no verdict, as a clause: "the module is not partitioned"."""
    remedy: str = ""
    """The way to get a verdict, as a sentence."""
    notes: tuple[str, ...] = ()
    """Clauses about a verdict: "no collectives match"."""
    why: str = ""
    """The reason for the check, as whoever asked for it gave it."""


@dataclass(frozen=True, slots=True)
class CheckedModule:
    """The checks of one module."""

    file: str
    module: str
    checks: tuple[Check, ...]

    def with_verdict(self, verdict: Verdict) -> list[Check]:
        """The checks that ended so."""
        return [check for check in self.checks if check.verdict is verdict]


def exit_code(
    checked: Iterable[CheckedModule], *, allow_no_verdict: bool = False, exit_zero: bool = False
) -> int:
    """0, 1 if a check failed, 2 if one has no verdict: a gate without an answer is not passed.

    `allow_no_verdict` takes those without a verdict for passed, `exit_zero` those that failed.
    """
    verdicts = {check.verdict for module in checked for check in module.checks}
    if Verdict.NONE in verdicts and not allow_no_verdict:
        return EXIT_NO_VERDICT
    return EXIT_FAILED if Verdict.FAILED in verdicts and not exit_zero else 0
