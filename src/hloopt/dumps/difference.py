"""The first place at which two files of dumps differ."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hloopt.diagnostics import HloError

if TYPE_CHECKING:
    from hloopt.reports.diff.findings import ComputationDiff, ModuleDiff


@dataclass(frozen=True, slots=True)
class FirstDifference:
    """The first instruction that differs, in the order of the second text, or a part of the header.

    `before` and `after` are texts, empty where the instruction or attribute is missing.
    """

    where: str
    """`%name in computation`, or the name of an attribute of the header."""
    what: tuple[str, ...]
    """Parts that differ: `shape`, `replica_groups`, …; `added` or `removed`."""
    before: str
    after: str
    total: int
    """The number of instructions that differ."""


def first_difference(files: tuple[str, str]) -> FirstDifference | None:
    """The first difference that counts, names and metadata aside; None where there is none, or one
    of the files cannot be read. O(n log n)."""
    from hloopt.analysis.fingerprint import LEFT_OUT
    from hloopt.collector import collector_paused
    from hloopt.files import read_module
    from hloopt.reports.diff.comparison import diff_modules
    from hloopt.verifier.well_formed import why_invalid

    try:
        with collector_paused():
            before, after = (read_module(path) for path in files)
            for module in (before, after):
                why_invalid(module)  # raises where nothing can be said
            return _first(diff_modules(before, after, LEFT_OUT))
    except HloError:
        return None


def no_difference(files: tuple[str, str]) -> FirstDifference | None:
    """The answer where the process that compared them was ended."""
    return None


def _first(found: ModuleDiff) -> FirstDifference | None:
    from hloopt.reports.diff.changes import Difference

    count = sum(computation.count_changes() for computation in found.computations)
    for attribute in found.attributes:
        old, new = attribute.before or "", attribute.after or ""
        return FirstDifference(f"header: {attribute.name}", ("header",), old, new, count)
    for kind in (Difference.CHANGED, Difference.REWIRED):
        for computation in found.computations:
            for change in computation.changed:
                if change.kind is kind and computation.after is not None:
                    where = f"%{change.after.name} in {computation.after}"
                    texts = change.before.text, change.after.text
                    return FirstDifference(where, change.what, *texts, count)
            if kind is Difference.CHANGED and (one := _one_sided(computation)):
                return replace(one, total=count)
    for computation in found.computations:
        for name in computation.moved:
            where = f"%{name} in {computation.after}"
            return FirstDifference(where, ("order",), "", "", count)
    return None


def _one_sided(computation: ComputationDiff) -> FirstDifference | None:
    for line in computation.removed:
        where = f"%{line.name} in {computation.before}"
        return FirstDifference(where, ("removed",), line.text, "", 0)
    for line in computation.added:
        where = f"%{line.name} in {computation.after}"
        return FirstDifference(where, ("added",), "", line.text, 0)
    return None
