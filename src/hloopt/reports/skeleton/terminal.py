"""The plot of a program as a terminal page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hloopt.diagnostics import counted, printable
from hloopt.reports.console.footnotes import print_footnote
from hloopt.reports.console.units import (
    columns,
    head,
    human_bytes,
    human_count,
    human_seconds,
    human_share,
    page_width,
)
from hloopt.reports.look import WORK
from hloopt.reports.scopes import scope_of
from hloopt.reports.skeleton.outline import condensed, shared_scope, shown
from hloopt.reports.skeleton.plot import Amounts, Kind, Step, loops_of, operations_of, total_of
from hloopt.reports.skeleton.program import Skeleton
from hloopt.reports.stage_notices import render_notices
from hloopt.reports.work_kinds import WorkKind

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_MOST_OPERATIONS, _MOST_IN_ALL = 4, 8
"""Operations that are counted of a step that is not open, and of the program."""
_LEAST_PLACE = 8
"""Columns of a scope that are worth to be shown."""
_LEAST_REST = 0.01
"""The part of all that is worth a line, of what has no line of its own."""
_FIGURE = 8
"""Columns of a share."""
_STYLES = {
    Kind.COLLECTIVE: WORK[WorkKind.COLLECTIVE].style,
    Kind.PRODUCT: WORK[WorkKind.PRODUCT].style,
    Kind.CUSTOM_CALL: WORK[WorkKind.CUSTOM_CALL].style,
    Kind.TRANSFER: WORK[WorkKind.COLLECTIVE].style,
    **dict.fromkeys((Kind.LOOP, Kind.CONDITIONAL), WORK[WorkKind.CONTROL_FLOW].style),
}


def render_skeleton(found: Skeleton, console: Console, *, depth: int | None, lines: int) -> None:
    """Print the plot: all of it down to `depth`, or what fits into so many lines."""
    from rich.text import Text

    total, width = found.total, page_width(console)
    title = Text.assemble("Skeleton of ", (printable(found.module.name), "bold"), _about(found))
    console.print(title, width=width)
    if runs := _counts(operations_of(found.steps), _MOST_IN_ALL):
        console.print(Text.assemble(("runs: ", "dim"), printable(runs)), width=width)
        console.print(Text.assemble(("loops: ", "dim"), _loops(found.steps)), width=width)
    render_notices(found.notices, console, width)
    steps = found.steps if depth is not None else condensed(found.steps, total, lines)
    opened = shown(steps, total, lines, depth)
    labels = ["time", "flops", "bytes"] if total.seconds else ["flops", "bytes"]
    heads = "".join(f"{label:>{_FIGURE}}" for label in labels)
    room = width - len(heads)
    console.print(Text(" " * room + heads, style="dim"))
    for line in _walk(steps, opened):
        text = _text(line, room, is_open=id(line.step) in opened)
        shares = _shares(line.step.amounts.times(line.runs), total)
        figures = "".join(f"{share:>{_FIGURE}}" for share in shares)
        text.append(" " * (room - columns(text.plain)) + figures)
        console.print(text, soft_wrap=True)
    rest = total - total_of(found.steps)
    if steps and any((part or 0) >= _LEAST_REST for part in _parts(rest, total)):
        figures = "".join(f"{share:>{_FIGURE}}" for share in _shares(rest, total))
        console.print(Text(f"{'all else':<{room}}{figures}", style="dim"))
    if not steps:
        console.print("no products, collectives, custom calls, loops or branches", width=width)
    for note in found.notes:
        print_footnote(console, note)


def _about(found: Skeleton) -> str:
    module, (replicas, partitions) = found.module, found.devices
    total = found.total
    parts = [
        counted(module.instruction_count(), "instruction"),
        f"{counted(replicas, 'replica')} x {counted(partitions, 'partition')}",
        f"{human_count(total.flops)} flops",
        f"{human_bytes(int(total.bytes))} accessed",
    ]
    if total.seconds:
        parts.append(human_seconds(total.seconds))
    return f": {', '.join(parts)}"


class _Line(NamedTuple):
    step: Step
    level: int
    runs: int
    """How often what it is in runs."""
    around: tuple[str, ...]
    """The scope of what it is in."""


def _walk(
    steps: Sequence[Step],
    opened: set[int],
    level: int = 0,
    runs: int = 1,
    around: tuple[str, ...] = (),
) -> Iterator[_Line]:
    """The steps that are shown."""
    for step in steps:
        yield _Line(step, level, runs, around)
        if id(step) in opened:
            inner = runs * step.count if step.kind in (Kind.LOOP, Kind.REPEAT) else runs
            yield from _walk(step.inside, opened, level + 1, inner, shared_scope(step.inside))


def _shares(amounts: Amounts, total: Amounts) -> Iterator[str]:
    for share in _parts(amounts, total):
        yield "" if share is None else human_share(share)


def _parts(amounts: Amounts, total: Amounts) -> Iterator[float | None]:
    """The part of each amount; None where there is none in all."""
    pairs = [(amounts.flops, total.flops), (amounts.bytes, total.bytes)]
    if total.seconds:
        pairs.insert(0, (amounts.seconds, total.seconds))
    for part, whole in pairs:
        yield part / whole if whole else None


def _text(line: _Line, room: int, *, is_open: bool) -> Text:
    """The words for a step, for one that is not open what it has inside, then its scope."""
    from rich.text import Text

    step = line.step
    words = f"{'  ' * line.level}{_words(step)}"
    if not is_open and not _is_one(step) and (inside := _inside(step)):
        words += f" [{inside}]"
    text = Text(head(printable(words), room - 2), style=_style(step))
    left = room - columns(text.plain) - 4
    is_named = any(each.kind is Kind.SCOPE for each in (step, *step.below))
    place = "" if is_named else _place(step, line)
    if place and left > _LEAST_PLACE:
        text.append(f"  {head(printable(place), left)}", style="dim")
    return text


def _style(step: Step) -> str:
    return _STYLES.get((step.below[0] if _is_one(step) else step).kind, "")


def _place(step: Step, line: _Line) -> str:
    """The scope of a step within that of what it is in."""
    scope = scope_of(step.place)
    parts = scope.parts
    if parts[: len(line.around)] == line.around:
        parts = parts[len(line.around) :]
    text = "/".join(parts)
    return f"{text}, backward" if text and scope.is_backward and not line.level else text


def _is_one(step: Step) -> bool:
    """Whether it is one operation, several times."""
    return step.kind is Kind.REPEAT and len(step.below) == 1 and not step.below[0].below


def _words(step: Step) -> str:
    if step.kind is Kind.LOOP:
        return f"loop {f'{step.count:,}' if step.is_counted else '?'} x"
    if step.kind is Kind.REPEAT:
        return f"{step.count:,} x" + (f" {_words(step.below[0])}" if len(step.below) == 1 else "")
    if step.kind is Kind.BRANCH:
        return f"branch {step.text}"
    if step.kind is Kind.CONDITIONAL:
        return "conditional"
    if step.kind is Kind.CUSTOM_CALL:
        return f"custom-call {step.text}"
    return step.text


def _inside(step: Step) -> str:
    """The operations of a container, the most frequent first."""
    return _counts(step.operations(), _MOST_OPERATIONS) if step.below else ""


def _loops(steps: Sequence[Step]) -> str:
    parts = [
        f"{count:,} of {'unknown' if trips is None else f'{trips:,}'} trips"
        for trips, count in loops_of(steps).most_common()
    ]
    return ", ".join(parts) or "none"


def _counts(operations: Counter[str], most: int) -> str:
    found = operations.most_common()
    parts = [f"{count:,} {operation}" for operation, count in found[:most]]
    return ", ".join([*parts, *(["…"] if len(found) > most else [])])
