"""The difference of two modules as lines that a page lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from hloopt.reports.diff.findings import ComputationDiff, ModuleDiff


class ChangeLine(NamedTuple):
    """A line of the list."""

    mark: str
    """`+`, `-`, `~`; a space before a computation."""
    name: str
    text: str


def change_lines(diff: ModuleDiff) -> Iterator[ChangeLine]:
    """The differences of each computation, below a line for it; of what changed the text before
    and the text after. O(changes)."""
    for computation in diff.computations:
        yield ChangeLine(" ", "", _head(computation))
        for line in computation.removed:
            yield ChangeLine("-", line.name, line.text)
        for line in computation.added:
            yield ChangeLine("+", line.name, line.text)
        for change in computation.changed:
            what = f"{change.kind.value}: {', '.join(change.what)}"
            yield ChangeLine("-", change.before.name, change.before.text)
            yield ChangeLine("~", change.after.name, f"{change.after.text}   ({what})")
        for name in computation.moved:
            yield ChangeLine("~", name, f"%{name}   (moved)")


def changes_by_name(diff: ModuleDiff) -> dict[str, str]:
    """How each instruction after differs from its partner before, by its name."""
    found: dict[str, str] = {}
    for computation in diff.computations:
        found.update(dict.fromkeys(computation.moved, "moved"))
        found.update({change.after.name: change.kind.value for change in computation.changed})
        found.update(dict.fromkeys((line.name for line in computation.added), "added"))
    return found


def _head(computation: ComputationDiff) -> str:
    name = computation.after or computation.before
    return f"%{name}: {computation.kind.value}"
