"""Redundant work: what several devices compute alike."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.cost import Cost, CostAnalysis
from hloopt.analysis.cost.runs import RUNNING, Runs, count_runs
from hloopt.analysis.replication.agreement import ALL, Agreement
from hloopt.analysis.replication.analysis import ReplicationAnalysis
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import COLLECTIVES, Opcode

_NO_WORK = frozenset(
    (Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.INFEED, *COLLECTIVES, *RUNNING)
)
"""Opcodes that compute nothing of their own, or that devices compute together."""


@dataclass(frozen=True, slots=True)
class RedundantWork:
    """An instruction whose result several devices compute alike, at some cost."""

    instruction: Instruction
    agreement: Agreement
    """The devices: ALL, or sets of them."""
    runs: Runs
    flops: int
    """Of all runs, on one device."""
    bytes_accessed: int
    """Of all runs, on one device."""


@dataclass(frozen=True, slots=True)
class Redundancy:
    """The work of one device in one run of the module, and the part of it that is redundant."""

    total: Cost
    work: list[RedundantWork]
    """Callers before what they call."""
    unknown_loops: list[Instruction]
    """Loops whose trip count is not known: they count as one trip."""


def find_redundancy(module: Module, analysis: ReplicationAnalysis) -> Redundancy:
    """The redundant work along the axis of `analysis`, which is of `module`.

    An instruction is redundant work where all arrays it computes are the same on all devices, or
    within sets of two devices and more, and it costs flops or memory traffic. A fusion counts as
    a whole. Parameters, constants, tuples, infeeds and collectives are no work; loops, branches
    and calls are what is in them, times their runs, as in `hloopt cost`. O(instructions).
    """
    costs = CostAnalysis(module)
    total = costs.module()
    work: list[RedundantWork] = []
    for computation, runs in count_runs(module, costs).items():
        if not runs.times:
            continue
        for instruction in computation.instructions:
            if instruction.opcode in _NO_WORK:
                continue
            agreement = analysis.agreement(instruction)
            if agreement is not ALL and not agreement.sets:
                continue
            cost = costs.of(instruction)
            flops, size = cost.flops * runs.times, cost.bytes_accessed * runs.times
            if flops or size:
                work.append(RedundantWork(instruction, agreement, runs, flops, size))
    return Redundancy(total, work, list(costs.unknown_loops))
