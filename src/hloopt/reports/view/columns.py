"""The instructions of a module as columns for the script of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hloopt.analysis.calls import callees_first
from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.runs import Runs, count_runs
from hloopt.analysis.latency.model import LatencyModel, Origin
from hloopt.diagnostics import printable
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.query import values
from hloopt.reports.console.units import CycleUnit
from hloopt.reports.html.columns import TextColumn
from hloopt.reports.scopes import scope_of
from hloopt.reports.work_kinds import work_kind
from hloopt.text.instruction_printer import InstructionPrinter
from hloopt.text.module_printer import instruction_line
from hloopt.text.print_options import PrintOptions

if TYPE_CHECKING:
    from hloopt.sharding.origins import Origins


@dataclass(frozen=True, slots=True)
class Extras:
    """Facts about instructions that not every module has."""

    times: LatencyModel | None = None
    unit: CycleUnit | None = None
    """The unit of the times."""
    alive: frozenset[str] | None = None
    """The names of what is alive at the peak; None where that is not known."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """By name how it differs from its partner in a module before: `added`, `changed`, …"""
    origins: Origins = field(default_factory=dict)
    """By name what made a collective; empty where that was not asked for."""


def module_columns(module: Module, extras: Extras) -> dict[str, Any]:
    """All instructions, computation by computation in their order, as columns.

    An operand is the number of instructions between it and its user, in the order of the columns;
    of computations callers come before what they call. O(instructions + operands).
    """
    computations = _callers_first(module)
    numbers = {computation: number for number, computation in enumerate(computations)}
    instructions = [each for c in computations for each in c.instructions]
    places = {instruction: place for place, instruction in enumerate(instructions)}
    scopes = _Scopes()
    op_names = TextColumn.of(map(op_name_of, instructions))
    runs = count_runs(module, CostAnalysis(module))
    return {
        "isScheduled": module.is_scheduled,
        "computations": {
            "name": TextColumn.of(c.name for c in computations).packed(),
            "role": TextColumn.of(map(_role, computations)).packed(),
            "size": [len(c) for c in computations],
            "runs": [_times_run(runs.get(c)) for c in computations],
        },
        "instructions": {
            "name": TextColumn.of(each.name for each in instructions).packed(),
            "opcode": TextColumn.of(each.opcode.value for each in instructions).packed(),
            "kind": TextColumn.of(work_kind(each).value for each in instructions).packed(),
            "shape": TextColumn.of(each.shape.text for each in instructions).packed(),
            "op_name": op_names.packed(),
            "source": TextColumn.of(map(_source, instructions)).packed(),
            "bytes": [values.size(each.shape)[0] for each in instructions],
            "degree": [len(each.operands) for each in instructions],
            "operand": [p - places[o] for p, i in enumerate(instructions) for o in i.operands],
        },
        "times": _times(instructions, extras),
        "scopeOf": [scopes.number(text) for text in op_names.numbers],
        "scopes": {"parent": scopes.parents, "name": TextColumn.of(scopes.names).packed()},
        "calls": [n for i in instructions for c in i.called for n in (places[i], numbers[c])],
        "alive": _alive(instructions, extras),
        "changes": _changes(instructions, extras.changes),
        "origins": {
            place: extras.origins[each.name].text()
            for place, each in enumerate(instructions)
            if each.name in extras.origins
        },
    }


def module_lines(module: Module) -> Iterator[str]:
    """The text of each instruction in a line with `%` before names, in the order of
    `module_columns`."""
    printer = InstructionPrinter(PrintOptions.keep())
    for computation in _callers_first(module):
        for instruction in computation.instructions:
            root = "ROOT " if instruction.is_root else ""
            text = instruction_line(instruction)
            if not text.startswith("%"):  # names without it cannot be told from other words
                text = " ".join(map(str.strip, printer.instruction(instruction).splitlines()))
            yield printable(root + text)


def _callers_first(module: Module) -> list[Computation]:
    """The entry first, which nothing calls."""
    others = (each for each in reversed(callees_first(module)) if not each.is_entry)
    return [module.entry, *others]


def _role(computation: Computation) -> str:
    """The opcode of what calls it; `entry` of the entry, nothing where nobody calls it."""
    if computation.is_entry:
        return "entry"
    return next((caller.opcode.value for caller in computation.callers), "")


def _times_run(runs: Runs | None) -> int | None:
    return runs.times if runs is not None and runs.is_known else None


def _source(instruction: Instruction) -> str:
    """Its own source line, `model.py:12`; nothing where its metadata names none."""
    return next(iter(values.source(instruction)), "")


def _times(instructions: list[Instruction], extras: Extras) -> dict[str, Any] | None:
    """The time of one run each, nothing where what is called takes it; None without a model."""
    if extras.times is None or extras.unit is None:
        return None
    found = [
        None if i.opcode in CONTROL_FLOW_CALLERS else extras.times.node_time(i)
        for i in instructions
    ]
    return {
        "secondsPerCycle": extras.unit.seconds,
        "cycles": [None if time is None else round(time.cycles, 6) for time in found],
        "guessed": [
            place
            for place, time in enumerate(found)
            if time is not None and time.origin is Origin.GUESS
        ],
    }


def _alive(instructions: list[Instruction], extras: Extras) -> list[int] | None:
    if extras.alive is None:
        return None
    return [place for place, each in enumerate(instructions) if each.name in extras.alive]


def _changes(instructions: list[Instruction], changes: Mapping[str, str]) -> dict[str, list[int]]:
    """The instructions of each kind of change."""
    found: dict[str, list[int]] = {}
    for place, instruction in enumerate(instructions):
        if instruction.name in changes:
            found.setdefault(changes[instruction.name], []).append(place)
    return found


class _Scopes:
    """The tree of scopes of op_names; number 0 is the scope around all."""

    def __init__(self) -> None:
        self.names = [""]
        self.parents = [0]
        self._numbers: dict[tuple[int, str], int] = {}

    def number(self, op_name: str) -> int:
        """The innermost scope of an op_name."""
        number = 0
        for label in scope_of(op_name).labels:
            number = self._child(number, label)
        return number

    def _child(self, parent: int, name: str) -> int:
        number = self._numbers.get((parent, name))
        if number is None:
            number = self._numbers[parent, name] = len(self.names)
            self.names.append(name)
            self.parents.append(parent)
        return number
