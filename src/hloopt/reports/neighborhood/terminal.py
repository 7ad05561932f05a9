"""The report on an instruction and what is around it as a terminal page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.analysis.latency.model import Origin
from hloopt.diagnostics import counted, printable
from hloopt.ir.computation import Computation
from hloopt.reports.console.tree import branches
from hloopt.reports.console.units import CycleUnit, columns, head, human_bytes, page_width, tail
from hloopt.reports.look import WORK
from hloopt.reports.matches.terminal import opcode_words
from hloopt.reports.neighborhood.details import Details, ModuleDetails
from hloopt.reports.neighborhood.findings import Neighbor, Neighborhood, largest
from hloopt.reports.neighborhood.region import Region
from hloopt.reports.work_kinds import work_kind

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

_LEAST_SHAPE = 12
_MOST_OP_NAME = 40
_MOST_SOURCE = 24


def render_neighborhood(
    found: Neighborhood, details: ModuleDetails, unit: CycleUnit | None, console: Console
) -> None:
    """Print what is known of the instruction, then the trees of its operands and users."""
    _print_details(details.of(found.instruction), unit, console)
    for title, tree in (("operands", found.operands), ("users", found.users)):
        if tree is not None:
            console.print()
            _print_tree(title, _below(tree), found.instruction.parent, details, unit, console)


def render_region(
    region: Region, details: ModuleDetails, unit: CycleUnit | None, console: Console, *, top: int
) -> None:
    """Print the size of a region, then the `top` largest of what it reads, gives and has inside."""
    from rich.text import Text

    count = counted(region.count, "instruction")
    console.print(Text.assemble((region.title, "bold"), f": {count}"), soft_wrap=True)
    parts = (("reads", region.reads), ("gives", region.gives), ("inside", region.instructions))
    for title, instructions in parts:
        console.print()
        shown = largest(instructions, top)
        below: list[Neighbor | int] = [Neighbor(each) for each in shown]
        if len(instructions) > len(shown):
            below.append(len(instructions) - len(shown))
        _print_tree(title, below, region.home, details, unit, console)


def _print_details(details: Details, unit: CycleUnit | None, console: Console) -> None:
    from rich.text import Text

    instruction = details.instruction
    console.print(Text(f"%{instruction.name}", style="bold"), soft_wrap=True)
    rows = [
        ("opcode", opcode_words(instruction)),
        ("shape", f"{instruction.shape.text}, {human_bytes(details.bytes)}"),
        ("in", f"%{instruction.parent.name}{_runs(details)}"),
        ("op_name", details.op_name),
        ("source", details.source),
        ("groups", instruction.attributes.get("replica_groups", "")),
        ("calls", ", ".join(f"%{each.name}" for each in instruction.called)),
        ("time", _time(details, unit)),
        ("schedule", _place(details)),
        ("memory", _memory(details)),
    ]
    for label, text in rows:
        if text:
            console.print(Text(f"  {label:<8}  {printable(text)}"), soft_wrap=True)


def _runs(details: Details) -> str:
    if details.runs is None:
        return ", which is embedded in an instruction"
    if details.runs.times == 1:
        return ""
    known = "" if details.runs.is_known else " at least"
    return f", which runs{known} {counted(details.runs.times, 'time')}"


def _time(details: Details, unit: CycleUnit | None) -> str:
    if details.time is None or unit is None:
        return ""
    return f"{unit.label(details.time.cycles)} ({details.time.origin.value})"


def _place(details: Details) -> str:
    if details.position is None:
        return ""
    return f"{details.position + 1:,} of {len(details.instruction.parent):,}"


def _memory(details: Details) -> str:
    if details.is_alive_at_peak is None:
        return ""
    return "alive at the peak" if details.is_alive_at_peak else "not alive at the peak"


def _print_tree(
    title: str,
    trees: list[Neighbor | int],
    home: Computation | None,
    details: ModuleDetails,
    unit: CycleUnit | None,
    console: Console,
) -> None:
    """Print trees; instructions outside of `home` with the computation that they are in."""
    from rich.text import Text

    console.print(Text(title if trees else f"{title}: none", style="bold"))
    width = page_width(console) if console.is_terminal else None
    for prefix, node in branches(trees, _below):
        if isinstance(node, int):
            console.print(Text(f"{prefix}… and {node:,} smaller", style="dim"), soft_wrap=True)
            continue
        room = None if width is None else width - len(prefix)
        line = _line(node, details.of(node.instruction), home, unit, room)
        console.print(Text.assemble(prefix, line), soft_wrap=True)


def _below(node: Neighbor | int) -> list[Neighbor | int]:
    """The branches below a node; the number of those that are left out is the last."""
    if isinstance(node, int):
        return []
    return [*node.below, *([node.left_out] if node.left_out else [])]


def _line(
    node: Neighbor,
    details: Details,
    home: Computation | None,
    unit: CycleUnit | None,
    room: int | None,
) -> Text:
    """Name, opcode, shape and bytes, then what there is of time, memory, source and op_name."""
    from rich.text import Text

    instruction = node.instruction
    start = f"%{instruction.name}"
    if instruction.parent is not home:
        start += f" in %{instruction.parent.name}"
    opcode = f"  {opcode_words(instruction)}"
    facts = [human_bytes(details.bytes)]
    if details.time is not None and details.time.origin is not Origin.FREE and unit is not None:
        facts.append(unit.label(details.time.cycles))
    if details.is_alive_at_peak:
        facts.append("at the peak")
    if details.source:
        source = printable(details.source)
        facts.append(source if room is None else tail(source, _MOST_SOURCE))
    if node.is_above:
        facts.append("(above)")
    end = "".join(f"  {fact}" for fact in facts)
    shape, op_name = instruction.shape.text, printable(details.op_name)
    if room is not None:
        left = room - columns(printable(start)) - len(opcode) - columns(end) - 2
        shape = head(shape, max(left, _LEAST_SHAPE))
        op_name = tail(op_name, min(left - columns(shape) - 2, _MOST_OP_NAME))
    more = "  …" if node.is_end and not node.is_above else ""
    name = f"  {op_name}" if op_name else ""
    style = WORK[work_kind(instruction)].style
    return Text.assemble(printable(start), (opcode, style), "  ", shape, end, (name, "dim"), more)
