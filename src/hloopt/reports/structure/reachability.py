"""The report on the order of two instructions: whether one has to run before the other, and why."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.call_graph import CallGraph
from hloopt.analysis.reachability import shortest_path
from hloopt.ir.instruction import Instruction


@dataclass(frozen=True, slots=True)
class PathStep:
    """An instruction on a path."""

    instruction: Instruction
    takes_previous_as: str | None
    """Its need of the step before: `operand 0`, `control predecessor`; None for the first."""


@dataclass(frozen=True, slots=True)
class OrderReport:
    """The order of two instructions, `first` and `second`."""

    first: Instruction
    second: Instruction
    compared: tuple[Instruction, Instruction] | None
    """The two themselves, or the instructions of one computation that they run in; None where
    there are none."""
    path: list[PathStep]
    """The fewest instructions between the compared, in the order they run; empty without."""

    @property
    def is_reachable(self) -> bool:
        """Whether `second` runs after `first`, whenever it runs."""
        if self.compared is None or not self.path:
            return False
        return self.path[0].instruction is self.compared[0]

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
    return OrderReport(first, second, compared, _steps(path or []))


def _steps(path: list[Instruction]) -> list[PathStep]:
    before = [None, *path]
    return [PathStep(step, _edge(last, step)) for last, step in zip(before, path, strict=False)]


def _edge(before: Instruction | None, instruction: Instruction) -> str | None:
    """The kind of edge from the instruction before it on a path; None without one."""
    if before is None:
        return None
    operands = instruction.operands
    return f"operand {operands.index(before)}" if before in operands else "control predecessor"
