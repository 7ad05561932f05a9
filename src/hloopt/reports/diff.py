"""The difference of two modules, for a terminal and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.reports.module_diff import (
    AttributeChange,
    ComputationDiff,
    Difference,
    InstructionChange,
    InstructionLine,
    ModuleDiff,
    StackFrameChange,
)
from hloopt.reports.text_segments import (
    highlight,
    in_two_columns,
    one_below_the_other,
)
from hloopt.reports.units import columns, middle, page_width

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from hloopt.reports.table import ReportTable

_STYLES = {
    Difference.ADDED: "green",
    Difference.REMOVED: "red",
    Difference.CHANGED: "yellow",
    Difference.METADATA: "dim",
    Difference.RENAMED: "dim",
}
_RANKS = {  # what says most comes first
    Difference.CHANGED: 0,
    Difference.REMOVED: 1,
    Difference.ADDED: 1,
    Difference.METADATA: 2,
    Difference.RENAMED: 3,
}
_WORDS = {kind: kind.value for kind in Difference} | {
    Difference.METADATA: "metadata only",
    Difference.RENAMED: "names only",
}
_SIDE_BY_SIDE_WIDTH = 120
_ONE_SIDED_SHOWN = 4  # instructions of a computation that only one module has
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

    With `text`, the instructions before and after, their differing parts highlighted;
    `side_by_side` does the same in two columns on a console of at least 120 columns. Each list
    (opcodes, computations, instructions of one computation) ends after `top` items with the
    number of those left out; what says most comes first, then what is largest. Long texts are
    shortened where both sides agree; `diff_to_json` has them whole. O(n log n) in the changes.
    """
    _print_summary(diff, console)
    if diff.is_identical:
        return
    _print_header(diff, console)
    if diff.opcodes:
        _print_opcodes(diff, console, top)
    if not diff.computations:
        return
    computations = sorted(diff.computations, key=lambda c: (_RANKS[c.kind], -c.count_changes()))
    if text or side_by_side:
        two_columns = side_by_side and console.width >= _SIDE_BY_SIDE_WIDTH
        for computation in computations[:top]:
            _print_computation(computation, console, two_columns, top)
        if len(computations) > top:
            console.print()
    else:
        _print_computations(computations[:top], console)
    _print_computations_left_out(computations[top:], console)


# -- summary --------------------------------------------------------------------------------


def _print_summary(diff: ModuleDiff, console: Console) -> None:
    from rich.text import Text

    computations = _from_to(f"{diff.computations_before:,}", f"{diff.computations_after:,}")
    instructions = _from_to(f"{diff.instructions_before:,}", f"{diff.instructions_after:,}")
    console.print(Text(_from_to(diff.before, diff.after), style="bold"))
    if diff.is_identical:
        console.print(f"identical: {computations} computations, {instructions} instructions")
        return
    totals = diff.instruction_totals()
    kinds = {kind: len(diff.computations_of(kind)) for kind in Difference}
    indent = len("instructions  ")
    numbers = max(len(computations), len(instructions)) + 2
    width = console.width - indent - numbers
    for label, number, (first, *rest) in (
        ("computations", computations, _counts(kinds, width)),
        ("instructions", instructions, _counts(totals, width, diff.count_moved())),
    ):
        console.print(Text.assemble(f"{label:<{indent}}{number:<{numbers}}", first))
        for line in rest:
            console.print(Text.assemble(" " * indent, line))


def _counts(totals: dict[Difference, int], width: int, moved: int = 0) -> list[Text]:
    """`+2  -1  ~3` and in words what counts for less, which has its own line if it must."""
    from rich.text import Text

    signs = (("+", Difference.ADDED), ("-", Difference.REMOVED), ("~", Difference.CHANGED))
    words = (
        (f"{moved:,} moved", "yellow", moved),
        (f"{totals[Difference.METADATA]:,} metadata only", "dim", totals[Difference.METADATA]),
        (f"{totals[Difference.RENAMED]:,} names only", "dim", totals[Difference.RENAMED]),
    )
    groups = [
        [Text(f"{sign}{totals[kind]:,}", _STYLES[kind]) for sign, kind in signs if totals[kind]],
        [Text(label, style) for label, style, number in words if number],
    ]
    between = Text("  ")
    lines = [between.join(group) for group in groups if group]
    if sum(map(len, lines)) + len(between) <= width:
        lines = [between.join(lines)]
    return lines if any(groups) else [Text("no difference", "dim")]


def _from_to(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


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

    from hloopt.reports.styled_text import cut

    label = Text.assemble((attribute.name, _STYLES[Difference.CHANGED]), ": ")
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
    text = f": {_from_to(f'{change.before:,}', f'{change.after:,}')}"
    if change.before == change.after and "StackFrames" in change.tables:
        text += ", not the same"
    return f"{text}; {', '.join(others)} differ" if others else text


def _print_opcodes(diff: ModuleDiff, console: Console, top: int) -> None:
    from rich.text import Text

    table = _table("opcode", "before", "after", "change")
    for change in diff.opcodes[:top]:
        style = _STYLES[Difference.ADDED if change.change > 0 else Difference.REMOVED]
        table.add_row(
            Text(change.opcode),
            f"{change.before:,}",
            f"{change.after:,}",
            Text(f"{change.change:+,}", style),
        )
    console.print()
    console.print(table, width=page_width(console))
    _print_left_out(console, len(diff.opcodes) - top, "opcode")


def _print_computations(computations: Sequence[ComputationDiff], console: Console) -> None:
    table = _table("computation", "before", "after", "difference", right=2)
    for computation in computations:
        table.add_row(
            partial(_heading, computation),
            f"{computation.size_before:,}" if computation.before is not None else "",
            f"{computation.size_after:,}" if computation.after is not None else "",
            partial(_difference_lines, computation),
        )
    console.print()
    console.print(table, width=page_width(console))


def _print_computations_left_out(computations: Sequence[ComputationDiff], console: Console) -> None:
    kinds = Counter(_WORDS[computation.kind] for computation in computations)
    words = [f"{number:,} {word}" for word, number in kinds.items()]
    details = f", all {next(iter(kinds))}" if len(kinds) == 1 else ": " + ", ".join(words)
    _print_left_out(console, len(computations), "computation", details)


def _table(*columns: str, right: int = 3) -> ReportTable:
    """A table whose first column holds names and whose next `right` columns hold numbers."""
    from hloopt.reports.table import ReportTable

    table = ReportTable()
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if 1 <= number <= right else "left")
    return table


def _heading(computation: ComputationDiff, width: int) -> Text:
    from rich.text import Text

    style = _STYLES[computation.kind]
    if computation.before is None:
        return Text(middle(f"+ %{computation.after}", width), style)
    if computation.after is None:
        return Text(middle(f"- %{computation.before}", width), style)
    names = f"%{computation.before}", f"%{computation.after}"
    if columns("~ " + _from_to(*names)) > width and names[0] != names[1]:
        half = (width - len("~  → ")) // 2
        names = middle(names[0], half), middle(names[1], half)
    return Text(middle("~ " + _from_to(*names), width), style)


def _difference_lines(computation: ComputationDiff, width: int) -> Text:
    from rich.text import Text

    return Text("\n").join(_difference(computation, width))


def _difference(computation: ComputationDiff, width: int) -> list[Text]:
    from rich.text import Text

    if computation.before is None or computation.after is None:
        return [Text(computation.kind.value, _STYLES[computation.kind])]
    if not computation.count_changes():
        return [Text("renamed", "dim")]
    return _counts(computation.totals(), width, len(computation.moved))


def _print_left_out(console: Console, number: int, what: str, details: str = "") -> None:
    if number > 0:
        console.print(
            f"… and {counted(number, f'more {what}')}{details}", style="dim", highlight=False
        )


# -- instruction texts ----------------------------------------------------------------------


def _print_computation(
    computation: ComputationDiff, console: Console, two_columns: bool, top: int
) -> None:
    from rich.text import Text

    console.print()
    width = console.width
    heading = Text("  ").join((_heading(computation, width), *_difference(computation, width)))
    console.print(heading, highlight=False)
    if computation.moved:
        names = ", ".join(f"%{name}" for name in computation.moved[:top])
        left_out = len(computation.moved) - top
        more = f" … and {left_out:,} more" if left_out > 0 else ""
        console.print(Text(f"moved: {names}{more}", _STYLES[Difference.CHANGED]))
    pairs = list(_text_pairs(computation))
    if computation.before is None or computation.after is None:
        top = min(top, _ONE_SIDED_SHOWN)
    for before, after in pairs[:top]:
        texts = in_two_columns if two_columns else one_below_the_other
        for line in texts(before, after, console):
            console.print(line, soft_wrap=True)
    _print_left_out(console, len(pairs) - top, "instruction")


def _text_pairs(computation: ComputationDiff) -> Iterator[tuple[str | None, str | None]]:
    """Texts before and after, those that say most first."""
    by_kind: dict[Difference, list[InstructionChange]] = {kind: [] for kind in Difference}
    for change in computation.changed:
        by_kind[change.kind].append(change)
    for change in by_kind[Difference.CHANGED]:
        yield change.before.text, change.after.text
    for line in computation.removed:
        yield line.text, None
    for line in computation.added:
        yield None, line.text
    for kind in (Difference.METADATA, Difference.RENAMED):
        for change in by_kind[kind]:
            yield change.before.text, change.after.text


# -- JSON -----------------------------------------------------------------------------------


def diff_to_json(diff: ModuleDiff) -> dict[str, object]:
    """`diff` as JSON values, nothing shortened. O(size of the difference)."""
    totals = diff.instruction_totals()
    return {
        "identical": diff.is_identical,
        "before": {
            "module": diff.before,
            "computations": diff.computations_before,
            "instructions": diff.instructions_before,
        },
        "after": {
            "module": diff.after,
            "computations": diff.computations_after,
            "instructions": diff.instructions_after,
        },
        "totals": {
            "computations": {kind.value: len(diff.computations_of(kind)) for kind in Difference},
            "instructions": {
                **{kind.value: number for kind, number in totals.items()},
                "moved": diff.count_moved(),
            },
        },
        "header": [asdict(change) for change in diff.attributes],
        "stack_frames": asdict(diff.stack_frames) if diff.stack_frames is not None else None,
        "opcodes": [
            {
                "opcode": change.opcode,
                "before": change.before,
                "after": change.after,
                "change": change.change,
            }
            for change in diff.opcodes
        ],
        "computations": [_computation_to_json(computation) for computation in diff.computations],
    }


def _computation_to_json(computation: ComputationDiff) -> dict[str, object]:
    return {
        "kind": computation.kind.value,
        "before": computation.before,
        "after": computation.after,
        "instructions_before": computation.size_before,
        "instructions_after": computation.size_after,
        "added": [_line_to_json(line) for line in computation.added],
        "removed": [_line_to_json(line) for line in computation.removed],
        "changed": [
            {
                "kind": change.kind.value,
                "before": _line_to_json(change.before),
                "after": _line_to_json(change.after),
            }
            for change in computation.changed
        ],
        "moved": computation.moved,
    }


def _line_to_json(line: InstructionLine) -> dict[str, str]:
    return {"name": line.name, "opcode": line.opcode, "text": line.text}
