"""The reasons why figures of a module allow no verdict at its stage, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from hloopt.checks.view import View
from hloopt.ir.instruction import Instruction
from hloopt.reports.console.units import human_share, some
from hloopt.reports.schedule.run import guessed_share
from hloopt.reports.stage_notices import partition_doubt


class Doubt(NamedTuple):
    """The reason why a figure allows no verdict, as a clause, and a sentence on what to do."""

    reason: str
    remedy: str


PARTITIONED = "Give compiled.as_text(), or the dump after spmd-partitioning."
OPTIMIZED = "Give the module after optimizations, scheduled: compiled.as_text(), or the last dump."
TARGET = "Name the hardware: --target NAME (`hloopt targets`)."
_NOT_MODELLED = frozenset(
    ("its memory spaces are not modelled", "the tiles of its layouts are not padded")
)
TRIPS = (
    "Give the loops a known_trip_count (`hloopt analyze loops` says why it is not known), or count "
    "each instruction once."
)


def not_partitioned(view: View) -> Doubt | None:
    """The doubt that figures are of the whole program: collectives are yet to be inserted."""
    reason = partition_doubt(view.subject.stage)
    return Doubt(reason, PARTITIONED) if reason else None


def not_fused(view: View) -> Doubt | None:
    """The doubt that figures are not those of one device, or of kernels that are not fused yet."""
    fused = view.subject.stage.fused
    if fused.holds is False:
        return not_partitioned(view) or Doubt(
            f"the module is not fused: {fused.evidence}", OPTIMIZED
        )
    return not_partitioned(view)


def memory_doubt(view: View) -> Doubt | None:
    """The doubt about figures of memory."""
    doubts = view.subject.memory.report.doubts
    if not doubts:
        return None
    is_whole = bool(partition_doubt(view.subject.stage))
    remedy = PARTITIONED if is_whole else OPTIMIZED
    if _NOT_MODELLED.issuperset(doubts):
        remedy = "Leave memory out of what is expected of such modules."
    return Doubt("; ".join(doubts), remedy)


def schedule_doubt(view: View) -> Doubt | None:
    """The doubt about times of a run of the schedule."""
    findings = view.schedule
    simulation = findings.simulation
    if simulation.model.is_abstract:
        return Doubt("times are XLA's fixed constants, in abstract cycles", TARGET)
    if doubts := findings.prepared.doubts:
        is_whole = bool(partition_doubt(view.subject.stage))
        return Doubt("; ".join(doubts), PARTITIONED if is_whole else OPTIMIZED)
    if simulation.unknown:
        return Doubt(
            f"nothing is known of how long these take: {names_of(simulation.unknown)}", TARGET
        )
    share = guessed_share(simulation) or 0.0
    if share > view.most_guessed:
        guessed = f", of {names_of(simulation.guessed)}" if simulation.guessed else ""
        return Doubt(
            f"{human_share(share)} of the time is guessed{guessed}",
            "Give measured times (--profile, --cost-table), or allow more with --max-guessed.",
        )
    return unknown_trips(simulation.unknown_loops)


def flops_doubt(view: View) -> Doubt | None:
    """The doubt about flops and transcendentals of a run."""
    costs = view.subject.costs
    costs.module()
    if calls := costs.unknown_calls:
        return not_partitioned(view) or Doubt(
            f"the arithmetic of custom calls is not known: {names_of(calls)}",
            "Expect something of the products instead: dots(…).flops.",
        )
    return not_partitioned(view) or unknown_trips(costs.unknown_loops)


def bytes_doubt(view: View) -> Doubt | None:
    """The doubt about bytes that move in a run."""
    costs = view.subject.costs
    costs.module()
    return not_fused(view) or unknown_trips(costs.unknown_loops)


def unknown_trips(loops: Sequence[Instruction] | dict[Instruction, None]) -> Doubt | None:
    """The doubt about loops that run an unknown number of trips."""
    if not loops:
        return None
    return Doubt(f"the number of trips is not known of {names_of(loops)}", TRIPS)


def names_of(instructions: Iterable[Instruction]) -> str:
    return some([f"%{name}" for name in dict.fromkeys(each.name for each in instructions)])
