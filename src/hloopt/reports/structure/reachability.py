"""Whether one instruction has to run before another, and why: on the terminal and as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hloopt.analysis.call_graph import CallGraph
from hloopt.analysis.reachability import shortest_path
from hloopt.ir.instruction import Instruction
from hloopt.reports.console.units import middle, page_width

if TYPE_CHECKING:
    from rich.console import Console

    from hloopt.reports.console.table import ReportTable


@dataclass(frozen=True, slots=True)
class OrderReport:
    """The order of two instructions, `first` and `second`."""

    first: Instruction
    second: Instruction
    compared: tuple[Instruction, Instruction] | None
    """The two themselves, or the instructions of one computation that they run in; None where
    there are none."""
    path: list[Instruction]
    """The fewest instructions between the compared, in the order they run; empty without."""

    @property
    def is_reachable(self) -> bool:
        """Whether `second` runs after `first`, whenever it runs."""
        return bool(self.path) and self.compared is not None and self.path[0] is self.compared[0]

    @property
    def is_connected(self) -> bool:
        """Whether one of the two runs after the other."""
        return bool(self.path)


def report_order(first: Instruction, second: Instruction) -> OrderReport:
    """Find out in which order two instructions of a module run. O(calls + edges before them)."""
    compared: tuple[Instruction, Instruction] | None = (first, second)
    if first.parent is not second.parent:
        graph = CallGraph.build(first.parent.module)
        compared = graph.nearest_ancestors_in_same_computation(first, second)
    path: list[Instruction] | None = None
    if compared is not None and (compared[0] is not compared[1] or first is second):
        a, b = compared
        path = shortest_path(a, b) or shortest_path(b, a)
    return OrderReport(first, second, compared, path or [])


# -- terminal -----------------------------------------------------------------------------------


def render_order(report: OrderReport, console: Console, *, top: int) -> None:
    """Print the answer, and the path it rests on: at most `top` of its instructions."""
    from rich.text import Text

    console.print(Text(_verdict(report), style="bold"))
    for line in _where(report):
        console.print(Text(line))
    if len(report.path) > 1:
        console.print(_path_table(report.path, top), width=page_width(console))


def _verdict(report: OrderReport) -> str:
    a, b = f"%{report.first.name}", f"%{report.second.name}"
    if report.is_reachable:
        return f"{b} is reachable from {a}"
    if report.is_connected:
        return f"{b} is not reachable from {a}, but {a} from {b}: {b} runs first"
    if report.compared is None or report.compared[0] is report.compared[1]:
        return f"{b} is not reachable from {a}: they are in different computations"
    return f"{b} is not reachable from {a}, nor {a} from {b}: they may run in any order"


def _where(report: OrderReport) -> list[str]:
    """The note on how instructions of different computations were compared."""
    first, second = report.first, report.second
    if first.parent is second.parent:
        return []
    lines = [f"%{i.name} is in %{i.parent.name}" for i in (first, second)]
    if report.compared is None:
        return [*lines, "no computation has exactly one call site that leads to each of them"]
    a, b = report.compared
    if a is b:
        return [*lines, f"both run within %{a.name} in %{a.parent.name}"]
    return [*lines, f"compared in %{a.parent.name}, where they are %{a.name} and %{b.name}"]


def _path_table(path: list[Instruction], top: int) -> ReportTable:
    from hloopt.reports.console.table import ReportTable

    table = ReportTable(gap=2)
    table.add_column("step", justify="right")
    table.add_column("instruction", cut=middle)
    table.add_column("opcode")
    table.add_column("takes previous as")
    hidden = range((top + 1) // 2, len(path) - top // 2)
    for step, instruction in enumerate(path):
        if step not in hidden:
            name = f"%{instruction.name}"
            table.add_row(f"{step:,}", name, instruction.opcode.value, _edge(path, step) or "")
        elif step == hidden.start:
            table.add_row("", f"… {len(hidden):,} more; --top shows them", style="dim")
    return table


def _edge(path: list[Instruction], step: int) -> str | None:
    """The kind of edge from the instruction before it on a path; None for the first."""
    if step == 0:
        return None
    before, operands = path[step - 1], path[step].operands
    return f"operand {operands.index(before)}" if before in operands else "control predecessor"


# -- JSON ---------------------------------------------------------------------------------------


def order_to_json(report: OrderReport) -> dict[str, Any]:
    """The report as plain data; `takes_previous_as` says how each step needs the last."""
    return {
        "module": report.first.parent.module.name,
        "first": _place(report.first),
        "second": _place(report.second),
        "compared": None if report.compared is None else [i.name for i in report.compared],
        "is_reachable": report.is_reachable,
        "is_connected": report.is_connected,
        "path": [
            {
                "instruction": instruction.name,
                "opcode": instruction.opcode.value,
                "takes_previous_as": _edge(report.path, step),
            }
            for step, instruction in enumerate(report.path)
        ],
    }


def _place(instruction: Instruction) -> dict[str, str]:
    return {"instruction": instruction.name, "computation": instruction.parent.name}
