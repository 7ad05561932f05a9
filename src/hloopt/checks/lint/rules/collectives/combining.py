"""Rules about collectives that could be one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from hloopt.analysis.inventory.collectives import Collective
from hloopt.analysis.latency.model import ErrorClass
from hloopt.checks.lint.costs import (
    collectives,
    exposed_seconds,
    has_times,
    runners,
    runs_text,
)
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.lint.needs import not_scheduled
from hloopt.checks.lint.synchronous import SynchronousCopy, synchronous_copy
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.diagnostics import counted
from hloopt.ir.computation import Computation
from hloopt.ir.devices.collective_mode import participants_key
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.options import Bytes, option
from hloopt.reports.console.units import human_bytes

_COMBINED = (Opcode.ALL_GATHER, Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER)
_DONES = frozenset((Opcode.ALL_GATHER_DONE, Opcode.ALL_REDUCE_DONE, Opcode.ASYNC_DONE))
_FREE = frozenset(
    (
        *(Opcode.PARAMETER, Opcode.CONSTANT, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT),
        Opcode.BITCAST,
    )
)
"""Opcodes that take no time, so that it does not matter where they stand."""
_NOT_KNOWN = (ErrorClass.GUESSED, ErrorClass.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class CombiningOptions(RuleOptions):
    """Options of `uncombined-collectives`."""

    size: Bytes = option(Bytes(1 << 20), "the most bytes of the result of a small collective")


class _Merged(NamedTuple):
    """Collectives of the copy that became one."""

    members: tuple[Instruction, ...]
    """Those of the module."""
    byte_count: int
    seconds: float
    """Seconds that one run saves, by the cost model; 0 without a verdict on times."""


@rule("HLL104", "uncombined-collectives", not_scheduled, options=CombiningOptions)
def uncombined_collectives(view: View, options: CombiningOptions) -> Iterator[Finding]:
    """Groups of small collectives that a combiner makes one of.

    The combiners of XLA:GPU decide, on a copy of a module that has several collectives of a kind in
    a computation. Those that the program does not wait for are left alone: other work hides them.
    O(edges) for each kind and computation that have.
    """
    if not _has_several(view, options.size):
        return
    for merged in _merged(view, options.size):
        first, *others = merged.members
        waits = sum(exposed_seconds(view, member) for member in merged.members)
        if has_times(view) and not waits:
            continue
        runs = view.runs(first).times
        yield Finding(
            f"%{first.name} and {counted(len(others), 'other')} of its kind could be one, of "
            f"{human_bytes(merged.byte_count)}{runs_text(view, first)}",
            first,
            Impact(min(merged.seconds * runs, waits)),
            related=tuple(others),
        )


def _has_several(view: View, size: int) -> bool:
    """Whether some computation runs two small collectives of a kind among the same devices."""
    kinds = [
        (each.kind, participants_key(each.instruction), runner.parent)
        for each in collectives(view)
        if each.kind in _COMBINED and 0 < _result_bytes(each) <= size
        for runner in runners(each)
    ]
    return len(set(kinds)) < len(kinds)


def _result_bytes(collective: Collective) -> int:
    scatters = collective.kind is Opcode.REDUCE_SCATTER
    return collective.payload // (max(collective.group_size, 1) if scatters else 1)


def _merged(view: View, size: int) -> Iterator[_Merged]:
    """Combine small collectives of a copy, group by group."""
    from hloopt.pass_framework.base import PassContext
    from hloopt.passes.collectives.collective_combiner.combination import combine
    from hloopt.passes.collectives.collective_combiner.passes import (
        GpuAllGatherCombiner,
        GpuAllReduceCombiner,
        GpuReduceScatterCombiner,
    )

    copy = synchronous_copy(view)
    context = PassContext(wants_remarks=False)
    for make in (GpuAllGatherCombiner, GpuAllReduceCombiner, GpuReduceScatterCombiner):
        combiner = make()
        for computation, found in combiner.candidates(copy.module, context).items():
            small = [each for each in found if _is_small(each, copy, size)]
            for group in combiner.groups(computation, small, context):
                for members in _as_scheduled(group.members, copy, view):
                    originals = tuple(copy.originals[member] for member in members)
                    byte_count = sum(shape_bytes(member.shape) for member in members)
                    before = _seconds(view, members)
                    after = _seconds(view, [combine(members)])
                    yield _Merged(originals, byte_count, max(before - after, 0.0))


def _as_scheduled(
    members: Sequence[Instruction], copy: SynchronousCopy, view: View
) -> Iterator[list[Instruction]]:
    """Yield those that can become one although nothing else moves in the schedule: between the last
    of their operands and the first use of a result. O(operands + users)."""
    positions = _positions(view, copy.originals[members[0]].parent)
    run: list[Instruction] = []
    last_ready, first_use = -1, len(positions)
    for member in members:
        original = copy.originals[member]
        ready, use = _ready(original, positions), _first_use(original, positions)
        if max(last_ready, ready) >= min(first_use, use):
            if len(run) > 1:
                yield run
            run, last_ready, first_use = [], -1, len(positions)
        run.append(member)
        last_ready, first_use = max(last_ready, ready), min(first_use, use)
    if len(run) > 1:
        yield run


def _positions(view: View, computation: Computation) -> dict[Instruction, int]:
    return view.once(
        ("positions", computation),
        lambda: {each: position for position, each in enumerate(computation.instructions)},
    )


def _ready(value: Instruction, positions: dict[Instruction, int]) -> int:
    """The position where the last operand of an instruction is computed; -1 without any.

    What costs nothing can stand anywhere behind that.
    """
    found, waiting = -1, list(value.operands)
    while waiting:
        operand = waiting.pop()
        if operand.opcode in _FREE:
            waiting += operand.operands
        else:
            found = max(found, positions[operand])
    return found


def _first_use(value: Instruction, positions: dict[Instruction, int]) -> int:
    """The position of the first work that reads a result, or the end of the computation."""
    found, waiting = len(positions), list(value.users)
    while waiting:
        user = waiting.pop()
        if user.opcode in _FREE or user.opcode in _DONES:
            waiting += user.users
        else:
            found = min(found, positions[user])
    return found


def _is_small(collective: Instruction, copy: SynchronousCopy, size: int) -> bool:
    is_run = collective in copy.originals
    return is_run and 0 < shape_bytes(collective.shape) <= size


def _seconds(view: View, instructions: Sequence[Instruction]) -> float:
    """The time of some collectives, one after the other; 0 where it is not known."""
    if not has_times(view):
        return 0.0
    model = view.schedule.simulation.model
    times = [model.whole_time(instruction) for instruction in instructions]
    if any(time.origin.error_class in _NOT_KNOWN for time in times):
        return 0.0
    return sum(time.cycles for time in times) / model.cycles_per_microsecond / 1e6
