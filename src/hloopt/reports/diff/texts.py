"""Texts of changed instructions before and after, the first of each group of equal changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.reports.console.text_segments import in_two_columns, one_below_the_other
from hloopt.reports.console.units import head, page_width
from hloopt.reports.diff.changes import Difference, InstructionLine
from hloopt.reports.diff.findings import ComputationDiff, ModuleDiff
from hloopt.reports.diff.groups import ChangeGroup
from hloopt.reports.diff.labels import RANKS, STYLES, difference, heading, places

if TYPE_CHECKING:
    from rich.console import Console

_SIDE_BY_SIDE_WIDTH = 120
_ONE_SIDED_SHOWN = 4  # instructions of a computation that only one module has


def print_texts(
    diff: ModuleDiff,
    rows: Sequence[Sequence[ComputationDiff]],
    console: Console,
    *,
    side_by_side: bool,
    top: int,
) -> None:
    """Print the changes of computations; of a list with equal changes the first one is shown.

    A group of equal changes is shown once, with the other places where it occurs.
    """
    printer = _TextPrinter(diff.groups, console, side_by_side, top)
    for row in rows:
        printer.print(row)


def print_left_out(console: Console, number: int, what: str, details: str = "") -> None:
    """Say how many more there are, if any."""
    if number > 0:
        console.print(f"… and {counted(number, f'more {what}')}{details}", style="dim")


class _TextPrinter:
    def __init__(
        self, groups: Sequence[ChangeGroup], console: Console, side_by_side: bool, top: int
    ) -> None:
        self._groups = groups
        self._console = console
        self._two_columns = side_by_side and console.width >= _SIDE_BY_SIDE_WIDTH
        self._top = top
        self._shown: set[int] = set()

    def print(self, row: Sequence[ComputationDiff]) -> None:
        from rich.text import Text

        computation, console = row[0], self._console
        console.print()
        width = page_width(console)
        top_line = heading(computation, len(row), width), *difference(computation, width)
        console.print(Text("  ").join(top_line), highlight=False)
        if len(row) > 1:
            names = (f"%{each.after if each.after is not None else each.before}" for each in row)
            console.print(head(", ".join(names), console.width), style="dim", highlight=False)
        if computation.moved:
            names = (f"%{name}" for name in computation.moved[: self._top])
            left_out = len(computation.moved) - self._top
            more = f" … and {left_out:,} more" if left_out > 0 else ""
            text = f"moved: {', '.join(names)}{more}"
            console.print(Text(text, STYLES[Difference.CHANGED]))
        if computation.before is None or computation.after is None:
            self._print_one_sided(computation)
        else:
            self._print_groups(computation)

    def _print_one_sided(self, computation: ComputationDiff) -> None:
        if computation.same_as is not None:
            return
        shown = min(self._top, _ONE_SIDED_SHOWN)
        for line in computation.removed[:shown]:
            self._print_pair(line, None)
        for line in computation.added[:shown]:
            self._print_pair(None, line)
        print_left_out(self._console, computation.count_changes() - shown, "instruction")

    def _print_groups(self, computation: ComputationDiff) -> None:
        replaced = dict(computation.replaced)
        groups = [number for number in computation.groups if number not in self._shown]
        groups.sort(key=lambda number: RANKS[self._groups[number].kind])
        added = {
            line.name: number
            for number in groups
            if self._groups[number].kind is Difference.ADDED
            and (line := self._groups[number].after) is not None
        }
        left_out = 0
        for position, number in enumerate(groups):
            if number in self._shown:
                continue
            group = self._groups[number]
            if position >= self._top:
                left_out += group.count
                continue
            self._shown.add(number)
            before, after = group.before, group.after
            if after is None and before is not None:
                partner = added.get(replaced.get(before.name, ""))
                if partner is not None and self._groups[partner].count == group.count:
                    self._shown.add(partner)
                    after = self._groups[partner].after
            self._print_pair(before, after)
            if group.count > 1:
                text = f"x{group.count:,}: also {places(group, skipped=1)}"
                self._console.print(
                    "  " + head(text, self._console.width - 2), style="dim", highlight=False
                )
        print_left_out(self._console, left_out, "instruction")

    def _print_pair(self, before: InstructionLine | None, after: InstructionLine | None) -> None:
        texts = in_two_columns if self._two_columns else one_below_the_other
        old, new = (None if line is None else line.text for line in (before, after))
        for line in texts(old, new, self._console):
            self._console.print(line, soft_wrap=True)
