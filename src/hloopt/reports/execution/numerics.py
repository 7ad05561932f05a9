"""Where two modules differ, and by how much, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

from hloopt.diagnostics import counted
from hloopt.equivalence.measures import shown
from hloopt.equivalence.signature import place_text
from hloopt.reports.console.units import middle, more_text, page_width, tail
from hloopt.reports.execution.equivalence import comparison_to_json, print_verdict, verdict_of
from hloopt.reports.execution.values import json_number

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.equivalence.numerics import Numerics, Origin, ValueErrors
    from hloopt.equivalence.numerics.findings import ArrayError
    from hloopt.ir.module import Module

GROUPINGS = ("scope", "op_name", "instruction")
NO_SCOPE = "(no op_name)"


@dataclass(slots=True)
class ErrorGroup:
    """Instructions of one scope, op_name, or one alone: how far their values are apart."""

    label: str
    instructions: int = 0
    differing: int = 0
    worst: ValueErrors | None = None
    """The instruction with the largest error."""
    first: ValueErrors | None = None
    """The first that differs."""

    def add(self, errors: ValueErrors) -> None:
        """Count another instruction in."""
        self.instructions += 1
        if errors.first is None:
            return
        self.differing += 1
        if self.first is None or _begin(errors) < _begin(self.first):
            self.first = errors
        if self.worst is None or errors.worst.relative > self.worst.worst.relative:
            self.worst = errors


def grouped(values: Sequence[ValueErrors], by: str, depth: int) -> list[ErrorGroup]:
    """The errors in groups, in the order in which they begin to differ, those that are equal
    behind; `depth` is that of a scope: how many parts of op_name."""
    groups: dict[str, ErrorGroup] = {}
    for errors in values:
        label = _label(errors, by, depth)
        groups.setdefault(label, ErrorGroup(label)).add(errors)
    return sorted(groups.values(), key=lambda group: _begin(group.first))


def _begin(errors: ValueErrors | None) -> float:
    """When the first value of an instruction differed."""
    first = errors and errors.first
    return first.when if first else inf


def _label(errors: ValueErrors, by: str, depth: int) -> str:
    if by == "instruction":
        return f"%{errors.before.name}"
    op_name = errors.op_name
    parts = op_name.split("/")
    return (op_name if by == "op_name" else "/".join(parts[:-1][:depth] or parts)) or NO_SCOPE


# -- terminal -------------------------------------------------------------------------------------


def render_numerics(
    found: Numerics,
    modules: tuple[Module, Module],
    console: Console,
    *,
    by: str,
    depth: int,
    top: int,
) -> None:
    """The verdict, the instruction where the modules part, and a table of errors."""
    print_verdict(found.comparison, console)
    for line in _origin_lines(found, modules):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    off = [group for group in grouped(found.values, by, depth) if group.differing]
    if off and top:
        _render_groups(off, console, found, by=by, top=top)
    for note in _notes(found):
        console.print(note, style="dim", soft_wrap=True)


def _origin_lines(found: Numerics, modules: tuple[Module, Module]) -> list[str]:
    if not found.values:
        return ["no values to compare: no instruction has a counterpart"]
    origin = found.origin
    if origin is None:
        if any(errors.differing for errors in found.values):
            return [f"no instruction is off by more than its operands ({found.inputs})"]
        return [
            f"all values that were compared are equal bit for bit ({found.inputs})",
            *_alone_lines(found, modules),
        ]
    before, after = origin.errors.before, origin.errors.after
    name = f"%{before.name}{place_text(modules[0], before)}"
    if before.name != after.name:
        name += f", in B %{after.name}{place_text(modules[1], after)}"
    lines = [f"first at {name}: {_distance(origin.error)}{_inputs(origin)}"]
    if origin.errors.op_name:
        lines.append(f"  op_name: {origin.errors.op_name}")
    for number, old, new in origin.operands:
        lines.append(f"  operand {number} was {old}, it is {new}")
    for name in origin.attributes:
        old, new = (i.attributes.get(name, "not there") for i in (before, after))
        lines.append(f"  {name} was {old}, it is {new}")
    if before.shape.type_name != after.shape.type_name and before.shape.is_array:
        lines.append(f"  type was {before.shape.type_name}, it is {after.shape.type_name}")
    lines.append(f"  {_when(origin, found)}")
    return lines


def _alone_lines(found: Numerics, modules: tuple[Module, Module]) -> Iterator[str]:
    """The first instructions without a counterpart: where modules differ whose values do not."""
    both = found.uncounted.only_before, found.uncounted.only_after
    for name, module, alone in zip("AB", modules, both, strict=True):
        if alone and found.comparison.mismatch is not None:
            first = alone[0]
            yield f"  only {name} has {first.opcode} %{first.name}{place_text(module, first)}"


def _distance(error: ArrayError) -> str:
    if error.ulps == inf:
        return "one is NaN or infinite and the other is not, or all before is 0"
    if error.type.startswith(("s", "u", "pred")):
        return f"{error.type} values are off by {_number(error.ulps)}"
    ulps = "1 ulp" if error.ulps == 1 else f"{_number(error.ulps)} ulps"
    return f"{ulps} of {error.type}, {shown(error.relative, 2)} of its largest value"


def _inputs(origin: Origin) -> str:
    if origin.inputs:
        return f"; its operands are off by {shown(origin.inputs, 2)} of theirs"
    return "" if origin.operands else "; its operands are equal"


def _when(origin: Origin, found: Numerics) -> str:
    runs = origin.errors.runs // max(1, found.comparison.devices[0])
    which = f", run {origin.run + 1} of {runs}" if runs > 1 else ""
    several = f"on device {origin.device}" if found.comparison.devices[0] > 1 else "on one device"
    return f"{several}{which}; {found.inputs}"


def _render_groups(
    groups: Sequence[ErrorGroup], console: Console, found: Numerics, *, by: str, top: int
) -> None:
    from hloopt.reports.console.table import ReportTable

    table = ReportTable(gap=2)
    table.add_column(by, cut=middle if by == "instruction" else tail)
    if by != "instruction":
        table.add_column("differ", justify="right")
    table.add_column("ulps", justify="right", stays=True)
    table.add_column("type")
    table.add_column("of largest", justify="right", stays=True)
    if by != "instruction":
        table.add_column("first", cut=middle)
    else:
        table.add_column("op_name", cut=tail)
    for group in groups[:top]:
        worst, first = group.worst, group.first
        assert worst is not None
        assert first is not None
        figures = (_number(worst.worst.ulps), worst.worst.type, shown(worst.worst.relative, 2))
        if by == "instruction":
            table.add_row(group.label, *figures, worst.op_name)
        else:
            count = f"{group.differing} of {group.instructions}"
            table.add_row(group.label, count, *figures, f"%{first.before.name}")
    console.print(table, width=page_width(console))
    if len(groups) > top:
        console.print(more_text(len(groups) - top, console.width), style="dim")


def _number(value: float) -> str:
    return shown(value, 2) if value >= 1e6 or value < 1 else f"{value:,.0f}"


def _notes(found: Numerics) -> list[str]:
    counts = found.uncounted
    notes = [
        (len(counts.only_before), "only A has"),
        (len(counts.only_after), "only B has"),
        (counts.other_shapes, "have other shapes"),
        (counts.other_runs, "ran another number of times"),
    ]
    parts = [f"{count:,} {what}" for count, what in notes if count]
    compared = f"{counted(len(found.values), 'instruction')} compared"
    return [f"{compared}; not, or in part: {', '.join(parts)}" if parts else compared]


# -- JSON -----------------------------------------------------------------------------------------


def numerics_to_json(found: Numerics, *, by: str, depth: int) -> dict[str, object]:
    """All there is to report."""
    outputs = comparison_to_json(found.comparison)
    return {
        "verdict": verdict_of(found.comparison).replace(" ", "-"),
        "reason": found.comparison.mismatch and found.comparison.mismatch.reason,
        "inputs": found.inputs,
        "outputs": outputs["outputs"],
        "origin": found.origin and _origin_to_json(found.origin),
        "groups": [_group_to_json(group) for group in grouped(found.values, by, depth)],
        "instructions": len(found.values),
        "unmatched": {
            "only_before": [i.name for i in found.uncounted.only_before],
            "only_after": [i.name for i in found.uncounted.only_after],
            "other_shapes": found.uncounted.other_shapes,
            "other_runs": found.uncounted.other_runs,
        },
    }


def _origin_to_json(origin: Origin) -> dict[str, object]:
    return {
        "before": origin.errors.before.name,
        "after": origin.errors.after.name,
        "op_name": origin.errors.op_name,
        "device": origin.device,
        "run": origin.run,
        **_error_to_json(origin.error),
        "inputs_relative": json_number(origin.inputs),
        "operands": [change._asdict() for change in origin.operands],
        "attributes": origin.attributes,
    }


def _group_to_json(group: ErrorGroup) -> dict[str, object]:
    worst, first = group.worst, group.first
    return {
        "name": group.label,
        "instructions": group.instructions,
        "differing": group.differing,
        "largest": worst and {"instruction": worst.before.name, **_error_to_json(worst.worst)},
        "first": first
        and {
            "instruction": first.before.name,
            "device": first.first and first.first.device,
            "run": first.first and first.first.run,
        },
    }


def _error_to_json(error: ArrayError) -> dict[str, object]:
    return {
        "ulps": json_number(error.ulps),
        "relative": json_number(error.relative),
        "type": error.type,
        "unequal": error.unequal,
    }
