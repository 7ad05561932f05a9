"""Labels in the report on a difference: kinds, counts, computations, groups of changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.reports.console.units import columns, middle, some
from hloopt.reports.diff.changes import Difference
from hloopt.reports.diff.findings import ComputationDiff
from hloopt.reports.diff.groups import ChangeGroup

if TYPE_CHECKING:
    from rich.text import Text

STYLES = {
    Difference.ADDED: "green",
    Difference.REMOVED: "red",
    Difference.CHANGED: "yellow",
    Difference.REWIRED: "dim",
    Difference.METADATA: "dim",
    Difference.RENAMED: "dim",
}
RANKS = {  # the most significant first
    Difference.CHANGED: 0,
    Difference.REMOVED: 1,
    Difference.ADDED: 1,
    Difference.REWIRED: 2,
    Difference.METADATA: 3,
    Difference.RENAMED: 4,
}
WORDS = {kind: kind.value for kind in Difference} | {
    Difference.METADATA: "metadata only",
    Difference.RENAMED: "names only",
}
SIGNS = {Difference.ADDED: "+", Difference.REMOVED: "-", Difference.CHANGED: "~"}


_LONGEST_SHAPE = 24


def counts(totals: Mapping[Difference, int], width: int, moved: int = 0) -> list[Text]:
    """`+2  -1  ~3`, then the weaker kinds in words; two lines if one is too narrow."""
    from rich.text import Text

    words = [(f"{moved:,} moved", "yellow", moved)]
    for kind in (Difference.REWIRED, Difference.METADATA, Difference.RENAMED):
        words.append((f"{totals[kind]:,} {WORDS[kind]}", STYLES[kind], totals[kind]))
    groups = [
        [
            Text(f"{sign}{totals[kind]:,}", STYLES[kind])
            for kind, sign in SIGNS.items()
            if totals[kind]
        ],
        [Text(label, style) for label, style, number in words if number],
    ]
    between = Text("  ")
    lines = [between.join(group) for group in groups if group]
    if sum(map(len, lines)) + len(between) <= width:
        lines = [between.join(lines)]
    return lines if any(groups) else [Text("no difference", "dim")]


def from_to(before: str, after: str) -> str:
    """`a → b`, or the text itself if both are equal."""
    return before if before == after else f"{before} → {after}"


def heading(computation: ComputationDiff, count: int, width: int) -> Text:
    """Sign and name of a computation, and `x3` if it stands for three with equal differences."""
    from rich.text import Text

    times = f" x{count:,}" if count > 1 else ""
    room = width - len(times)
    names = computation.before, computation.after
    if None not in names and names[0] != names[1] and columns(_named(computation)) > room:
        half = (room - len("~ % → %")) // 2
        text = "~ " + from_to(*(f"%{middle(name or '', half)}" for name in names))
    else:
        text = middle(_named(computation), room)
    return Text(text, STYLES[computation.kind]).append(times, "bold")


def _named(computation: ComputationDiff) -> str:
    if computation.before is None:
        return f"+ %{computation.after}"
    if computation.after is None:
        return f"- %{computation.before}"
    return "~ " + from_to(f"%{computation.before}", f"%{computation.after}")


def difference(computation: ComputationDiff, width: int) -> list[Text]:
    """Counts of differences in a computation, or `added`, `removed`, `renamed`."""
    from rich.text import Text

    if computation.before is None or computation.after is None:
        text = Text(computation.kind.value, STYLES[computation.kind])
        if computation.same_as is not None:
            text.append(f", same as %{computation.same_as}", "dim")
        return [text]
    if not computation.count_changes():
        return [Text("renamed", "dim")]
    return counts(computation.totals(), width, len(computation.moved))


def title(group: ChangeGroup) -> Text:
    """`~ parameter: sharding`, `+ add f32[8,16]`."""
    from rich.text import Text

    sign = SIGNS.get(group.kind)
    line = group.after or group.before
    assert line is not None
    text = Text(f"{sign} {group.opcode}" if sign else group.opcode, STYLES[group.kind])
    if group.kind in (Difference.ADDED, Difference.REMOVED):
        return text.append(f" {middle(line.shape, _LONGEST_SHAPE)}")
    what = [name.removeprefix("metadata.") for name in group.what] or ["name"]
    return text.append(": " + ", ".join(what))


def places(group: ChangeGroup, skipped: int = 0) -> str:
    """`%add.1, %add.2 in %main; %x in %body`: names after, for removed instructions before."""
    names: dict[str, list[str]] = {}
    for place in group.places[skipped:]:
        name = place.after if place.after is not None else place.before
        names.setdefault(place.computation, []).append(f"%{name}")
    texts = [f"{some(members)} in %{where}" for where, members in names.items()]
    shown = "; ".join(texts[:3])
    return shown if len(texts) <= 3 else f"{shown}; {counted(len(texts) - 3, 'more computation')}"
