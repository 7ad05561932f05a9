"""The difference of two modules, for a terminal: counts and tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.reports.console.text_segments import highlight
from hloopt.reports.console.units import middle, page_width
from hloopt.reports.diff.changes import Difference
from hloopt.reports.diff.findings import (
    AttributeChange,
    ComputationDiff,
    ModuleDiff,
    StackFrameChange,
)
from hloopt.reports.diff.groups import ChangeGroup
from hloopt.reports.diff.labels import (
    RANKS,
    STYLES,
    WORDS,
    counts,
    difference,
    from_to,
    heading,
    places,
    title,
)
from hloopt.reports.diff.texts import print_left_out, print_texts

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.console.table import ReportTable

_ATTRIBUTE_START = 24  # characters shown of a long value


def render_diff(
    diff: ModuleDiff,
    console: Console,
    side_by_side: bool = False,
    top: int = 20,
    *,
    text: bool = False,
) -> None:
    """Print a summary of `diff`, the opcodes whose number differs, and what differs where.

    Equal changes are one row. With `text`, the instructions before and after, their differing
    parts highlighted; `side_by_side` does the same in two columns on a console of at least 120
    columns. Each list ends after `top` items with the number of those left out; what says most
    comes first, then what is largest. Long texts are shortened where both sides agree;
    `diff_to_json` has them whole. O(n log n) in the changes.
    """
    _print_summary(diff, console)
    if diff.is_identical:
        return
    _print_header(diff, console)
    if diff.opcodes:
        _print_opcodes(diff, console, top)
    if not diff.computations:
        return
    folded = _folded(diff.computations)
    if text or side_by_side:
        print_texts(diff, folded[:top], console, side_by_side=side_by_side, top=top)
        if len(folded) > top:
            console.print()
    else:
        _print_computations(folded[:top], console)
    _print_computations_left_out(folded[top:], console)
    if diff.groups and not (text or side_by_side):
        _print_groups(diff.groups, console, top)


def _folded(computations: Sequence[ComputationDiff]) -> list[list[ComputationDiff]]:
    """Computations grouped by equal differences, the most significant first."""
    alike: dict[tuple[int, str | None], list[ComputationDiff]] = {}
    for computation in computations:
        key = computation.pattern, computation.same_as
        alike.setdefault(key, []).append(computation)
    return sorted(alike.values(), key=lambda row: (RANKS[row[0].kind], -row[0].count_changes()))


# -- summary --------------------------------------------------------------------------------


def _print_summary(diff: ModuleDiff, console: Console) -> None:
    from rich.text import Text

    console.print(Text(from_to(diff.before, diff.after), style="bold"))
    if diff.is_identical:
        but = " but for names" if diff.renamed.count else ""
        size = f"{counted(diff.computations_after, 'computation')}, "
        size += counted(diff.instructions_after, "instruction")
        console.print(f"identical{but}: {size}")
    else:
        _print_counts(diff, console)
    if diff.renamed.count and "names" in diff.ignored:
        console.print(_renamed(diff), style="dim", highlight=False)
    left_out = [name for name in diff.ignored if name != "names"]
    if left_out:
        console.print(f"not compared: {', '.join(left_out)}", style="dim", highlight=False)


def _print_counts(diff: ModuleDiff, console: Console) -> None:
    from rich.text import Text

    computations = from_to(f"{diff.computations_before:,}", f"{diff.computations_after:,}")
    instructions = from_to(f"{diff.instructions_before:,}", f"{diff.instructions_after:,}")
    kinds = {kind: len(diff.computations_of(kind)) for kind in Difference}
    indent = len("instructions  ")
    numbers = max(len(computations), len(instructions)) + 2
    width = console.width - indent - numbers
    for label, number, (first, *rest) in (
        ("computations", computations, counts(kinds, width)),
        (
            "instructions",
            instructions,
            counts(diff.instruction_totals(), width, diff.count_moved()),
        ),
    ):
        console.print(Text.assemble(f"{label:<{indent}}{number:<{numbers}}", first))
        for line in rest:
            console.print(Text.assemble(" " * indent, line))


def _renamed(diff: ModuleDiff) -> str:
    renamed = diff.renamed
    parts = [
        counted(number, what)
        for number, what in (
            (renamed.instructions, "instruction"),
            (renamed.computations, "computation"),
        )
        if number
    ]
    if renamed.module:
        parts.append("the module")
    return f"{renamed.count:,} renamed: {', '.join(parts)}"


def _print_header(diff: ModuleDiff, console: Console) -> None:
    from rich.text import Text

    attributes = [attribute for attribute in diff.attributes if attribute.name != "name"]
    if attributes or diff.stack_frames is not None:
        console.print()
    for attribute in attributes:
        console.print(_attribute(attribute, console.width))
    if diff.stack_frames is not None:
        console.print(Text.assemble(("stack frames", "yellow"), _frames(diff.stack_frames)))


def _attribute(attribute: AttributeChange, width: int) -> Text:
    """`name: before → after`, the arrow in a second line where both do not fit in one."""
    from rich.text import Text

    from hloopt.reports.console.styled_text import cut

    label = Text.assemble((attribute.name, STYLES[Difference.CHANGED]), ": ")
    before, after = (
        None if value is None else " ".join(value.split())
        for value in (attribute.before, attribute.after)
    )
    for start in (None, _ATTRIBUTE_START):
        old, new = highlight(before, after, start)
        line = Text.assemble(label, old or _absent(), " → ", new or _absent())
        if len(line) <= width:
            return line
    room = max(width - len(label), _ATTRIBUTE_START)
    arrow = "→ ".rjust(len(label))
    old, new = cut(old or _absent(), room, middle), cut(new or _absent(), room, middle)
    return Text.assemble(label, old, "\n", arrow, new)


def _absent() -> Text:
    from rich.text import Text

    return Text("absent", "dim")


def _frames(change: StackFrameChange) -> str:
    others = [title for title in change.tables if title != "StackFrames"]
    text = f": {from_to(f'{change.before:,}', f'{change.after:,}')}"
    if change.before == change.after and "StackFrames" in change.tables:
        text += ", not the same"
    return f"{text}; {', '.join(others)} differ" if others else text


# -- tables ---------------------------------------------------------------------------------


def _print_opcodes(diff: ModuleDiff, console: Console, top: int) -> None:
    from rich.text import Text

    table = _table("opcode", "before", "after", "change")
    for change in diff.opcodes[:top]:
        style = STYLES[Difference.ADDED if change.change > 0 else Difference.REMOVED]
        table.add_row(
            Text(change.opcode),
            f"{change.before:,}",
            f"{change.after:,}",
            Text(f"{change.change:+,}", style),
        )
    console.print()
    console.print(table, width=page_width(console))
    print_left_out(console, len(diff.opcodes) - top, "opcode")


def _print_computations(rows: Sequence[Sequence[ComputationDiff]], console: Console) -> None:
    table = _table("computation", "before", "after", "difference", right=2)
    for row in rows:
        computation = row[0]
        table.add_row(
            partial(heading, computation, len(row)),
            f"{computation.size_before:,}" if computation.before is not None else "",
            f"{computation.size_after:,}" if computation.after is not None else "",
            partial(_difference_lines, computation),
        )
    console.print()
    console.print(table, width=page_width(console))


def _difference_lines(computation: ComputationDiff, width: int) -> Text:
    from rich.text import Text

    return Text("\n").join(difference(computation, width))


def _print_computations_left_out(
    rows: Sequence[Sequence[ComputationDiff]], console: Console
) -> None:
    computations = [computation for row in rows for computation in row]
    kinds = Counter(WORDS[computation.kind] for computation in computations)
    words = [f"{number:,} {word}" for word, number in kinds.items()]
    details = f", all {next(iter(kinds))}" if len(kinds) == 1 else ": " + ", ".join(words)
    print_left_out(console, len(computations), "computation", details)


def _print_groups(groups: Sequence[ChangeGroup], console: Console, top: int) -> None:
    from rich.text import Text

    rows = sorted(groups, key=lambda group: (RANKS[group.kind], -group.count))
    table = _table("change", "times", "where", right=1)
    for group in rows[:top]:
        table.add_row(title(group), f"{group.count:,}", Text(places(group), "dim"))
    console.print()
    console.print(table, width=page_width(console))
    print_left_out(console, len(rows) - top, "change")


def _table(*columns: str, right: int = 3) -> ReportTable:
    """A table whose first column holds names and whose next `right` columns hold numbers."""
    from hloopt.reports.console.table import ReportTable

    table = ReportTable()
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if 1 <= number <= right else "left")
    return table
