"""The figures of one module of a dump, as plain data."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from hloopt.ir.instruction import Instruction
    from hloopt.ir.module import Module


class Depth(enum.IntEnum):
    """How much is asked about a module; each has what those before it have."""

    PRINT = 0
    """The fingerprint, and the size."""
    STEP = 1
    """Beside these figures for a step of a chain of passes: flops, collectives, peak."""
    FULL = 2
    """Beside these signature and sequence of collectives."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts of a module; figures are of one device and one run of the module.

    Figures that were not asked for, or of which the text tells nothing certain, are None.
    """

    module: str
    fingerprint: str
    instructions: int
    computations: int
    is_scheduled: bool
    broken_rule: str = ""
    """The rule of HLO that the module breaks, as dumps within a compilation may: then there are no
    figures of its work and memory."""
    devices: tuple[int, int] = (1, 1)
    """Replicas and partitions."""
    flops: int | None = None
    flops_doubt: str = ""
    """Why there are no flops."""
    peak: int | None = None
    """Bytes of the memory peak, of a module with a schedule."""
    peak_doubt: str = ""
    exposed: float | None = None
    """Seconds of waiting for asynchronous operations on the target, of a module with a schedule."""
    exposed_doubt: str = "no target is named"
    collectives: dict[str, tuple[int, int]] | None = None
    """Kinds, each with the number of operations and their payload bytes, loops by their trips."""
    parameters: tuple[str, ...] | None = None
    """The arrays that the program takes, with their shardings."""
    results: tuple[str, ...] | None = None
    sequence: tuple[str, ...] | None = None
    """Of a module with a schedule its collectives in the order of execution: kind, shape, groups of
    devices, channel."""


def facts_of(module: Module, depth: Depth, target: str | None = None) -> Facts:
    """Look at a module; times are those of `target`. Near-linear in its instructions.

    Raises HloError for one that is malformed, or in which something depends on itself.
    """
    from hloopt.analysis.fingerprint import fingerprint
    from hloopt.ir.devices.device_counts import device_counts
    from hloopt.verifier.well_formed import why_invalid

    found = _Figures()
    problem = why_invalid(module)
    if problem is not None:
        doubt = f"the module breaks a rule of HLO: {problem.message}"
        doubtful = ("broken_rule", "flops_doubt", "peak_doubt", "exposed_doubt")
        found.values |= dict.fromkeys(doubtful, doubt)
    elif depth >= Depth.STEP:
        _add_work(module, found)
        _add_peak(module, found)
    if depth >= Depth.FULL and problem is None:
        _add_interface(module, found)
        if target is not None:
            _add_exposed(module, target, found)
    grid = device_counts(module)
    return Facts(
        module=module.name,
        fingerprint=fingerprint(module),
        instructions=module.instruction_count(),
        computations=len(module.computations),
        is_scheduled=module.is_scheduled,
        devices=(grid.replicas, grid.partitions),
        **found.values,
    )


@dataclass
class _Figures:
    values: dict[str, Any] = field(default_factory=dict)


def _add_work(module: Module, found: _Figures) -> None:
    from hloopt.analysis.cost import CostAnalysis
    from hloopt.analysis.cost.runs import Runs, runs_with_parts
    from hloopt.analysis.inventory.collectives import collectives_of
    from hloopt.analysis.stage import Stage
    from hloopt.diagnostics import counted
    from hloopt.reports.stage_notices import partition_doubt

    costs = CostAnalysis(module)
    flops = costs.module().flops
    if doubt := partition_doubt(Stage.of(module)):
        found.values["flops_doubt"] = doubt
    elif costs.unknown_loops:
        loops = counted(len(costs.unknown_loops), "loop")
        found.values["flops_doubt"] = f"the trips of {loops} are not known"
    elif costs.unknown_calls:
        calls = counted(len(costs.unknown_calls), "custom call")
        found.values["flops_doubt"] = f"the arithmetic of {calls} is not known"
    else:
        found.values["flops"] = flops
    runs = runs_with_parts(module, costs)
    kinds: dict[str, tuple[int, int]] = {}
    for each in collectives_of(module):
        count, payload = kinds.get(each.kind.value, (0, 0))
        times = runs.get(each.instruction.parent, Runs(0, True)).times
        kinds[each.kind.value] = count + 1, payload + each.payload * times
    found.values["collectives"] = kinds


def _add_peak(module: Module, found: _Figures) -> None:
    if not module.is_scheduled:
        found.values["peak_doubt"] = "the module is not scheduled"
        return
    from hloopt.reports.memory.model import memory_report

    report = memory_report(module)
    if report.doubts:
        found.values["peak_doubt"] = "; ".join(report.doubts)
    else:
        found.values["peak"] = report.peak


_MOST_GUESSED = 0.05
"""The share of the time that may be guessed, as in `hloopt expect`."""


def _add_exposed(module: Module, target: str, found: _Figures) -> None:
    from hloopt.cost_models import CostModelChoice
    from hloopt.reports.console.units import human_share
    from hloopt.reports.schedule.findings import ScheduleFindings
    from hloopt.reports.schedule.run import ScheduleSettings, guessed_share

    if not module.is_scheduled:
        found.values["exposed_doubt"] = "the module is not scheduled"
        return
    settings = ScheduleSettings(cost_model=CostModelChoice(target=target))
    findings = ScheduleFindings.of(module, settings)
    simulation, seconds = findings.simulation, findings.unit.seconds
    share = guessed_share(simulation) or 0.0
    doubts = list(findings.prepared.doubts)
    if share > _MOST_GUESSED:
        doubts.append(f"{human_share(share)} of the time is guessed")
    if seconds is None or simulation.unknown:
        doubts.append("times are not known")
    if simulation.unknown_loops:
        doubts.append("trips of loops are not known")
    found.values["exposed_doubt"] = "; ".join(doubts)
    if not doubts and seconds is not None:
        found.values["exposed"] = simulation.exposed * seconds


def _add_interface(module: Module, found: _Figures) -> None:
    from hloopt.analysis.inventory.arrays import arrays_of

    for name, instructions in (
        ("parameters", module.entry.parameters),
        ("results", [module.entry.root]),
    ):
        arrays = arrays_of(instructions)
        found.values[name] = tuple(f"{each.shape.text} {each.sharding}".strip() for each in arrays)
    if module.is_scheduled:
        found.values["sequence"] = tuple(map(_collective_text, _collectives_in_order(module)))


def _collectives_in_order(module: Module) -> Iterator[Instruction]:
    """Collectives as devices come to them; those of loops and branches once, at the first call."""
    from hloopt.analysis.async_operations import SYNC_COLLECTIVES
    from hloopt.analysis.flat_schedule import FlatSchedule
    from hloopt.analysis.inventory.collectives import kind_of
    from hloopt.ir.opcode import Opcode

    for step in FlatSchedule.of(module).steps:
        inside = step.called[0].instructions if step.opcode is Opcode.FUSION else (step,)
        yield from (each for each in inside if kind_of(each) in SYNC_COLLECTIVES)


_LONGEST_GROUPS = 100


def _collective_text(collective: Instruction) -> str:
    from hloopt.analysis.inventory.collectives import kind_of

    attributes = collective.attributes
    groups = attributes.get("source_target_pairs") or attributes.get("replica_groups") or "{}"
    if len(groups) > _LONGEST_GROUPS:
        from hashlib import sha256

        groups = f"{groups[:40]}…{sha256(groups.encode()).hexdigest()[:8]}"
    channel = attributes.get("channel_id")
    at = "" if channel is None else f" channel {channel}"
    return f"{kind_of(collective).value} {collective.shape.text} groups {groups}{at}"
