"""Rules about buffers that need not be there: large constants, broadcasts that memory holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hloopt.checks.doubts import memory_doubt, not_partitioned
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.lint.readers import can_compute
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.diagnostics import counted, with_article
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.memory.allocations import AllocationKind
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.options import Bytes, option
from hloopt.reports.console.units import human_bytes

_MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class LargeConstantOptions(RuleOptions):
    """Options of `large-constant`."""

    size: Bytes = option(_MIB, "the least bytes of a constant that is worth a finding")


@rule("HLL402", "large-constant", options=LargeConstantOptions)
def large_constant(view: View, options: LargeConstantOptions) -> Iterator[Finding]:
    """Arrays that stand in the module as literals, equal ones together. O(their text)."""
    equal: dict[tuple[object, object], list[Instruction]] = {}
    for constant in view.subject.module.instructions(Opcode.CONSTANT):
        if _size(constant) >= options.size:
            is_elided = ELIDED in constant.payload
            literal = constant if is_elided else constant.payload.strip()
            equal.setdefault((constant.shape, literal), []).append(constant)
    for constants in equal.values():
        yield _large_constants(view, constants)


def _large_constants(view: View, constants: Sequence[Instruction]) -> Finding:
    """The finding about one constant, or several of the same literal."""
    first, *others = constants
    times = f" and stands in the module {counted(len(constants), 'time')}" if others else ""
    held = [c for c in constants if not view.facts.is_in_fusion(c.parent)]
    pattern = _pattern_of(first)
    return Finding(
        f"constant %{first.name} is a literal of {human_bytes(_size(first))}{times}"
        + (f"; its values are those of {with_article(pattern)}" if pattern else ""),
        first,
        Impact(memory=0 if not_partitioned(view) else sum(map(_size, held))),
        related=tuple(others),
    )


def _size(constant: Instruction) -> int:
    return sum(map(shape_bytes, constant.shape.leaves()))


def _pattern_of(constant: Instruction) -> str:
    """The operation that makes the values of a constant: `broadcast`, `iota`; empty for others."""
    if ELIDED in constant.payload or not constant.shape.is_array:
        return ""
    import numpy as np

    from hloopt.interpreter.literals import literal_value

    values = np.asarray(literal_value(constant.payload, constant.shape))
    if values.size and bool((values == values.flat[0]).all()):
        return "broadcast"
    for dimension, size in enumerate(values.shape):
        steps = np.arange(size).reshape([-1 if d == dimension else 1 for d in range(values.ndim)])
        if bool((values == steps).all()):
            return "iota"
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializedBroadcastOptions(RuleOptions):
    """Options of `materialized-broadcast`."""

    size: Bytes = option(_MIB, "the least bytes at the peak that are worth a finding")


@rule("HLL403", "materialized-broadcast", memory_doubt, options=MaterializedBroadcastOptions)
def materialized_broadcast(view: View, options: MaterializedBroadcastOptions) -> Iterator[Finding]:
    """Broadcasts and iotas in memory at the peak whose readers could compute them.

    O(instructions), and O(positions) for each, beside the memory report.
    """
    analysis = view.subject.memory.analysis
    named = {(i.parent.name, i.name): (i, o) for i in analysis.flow.held if (o := _broadcast_in(i))}
    places = _places(analysis)
    for buffer in view.subject.memory.report.live_at_peak:
        if buffer.kind is not AllocationKind.TEMPORARY or buffer.size < options.size:
            continue
        instruction, opcode = named.get((buffer.computation, buffer.name), (None, None))
        if instruction is None or opcode is None:
            continue
        value = analysis.flow.held[instruction][0]
        saved = _saved(view, value, places[value]) if _is_only_read(analysis, value) else 0
        if saved >= options.size:
            yield Finding(
                f"%{instruction.name} holds {with_article(opcode.value)} in memory at the peak, "
                "although its readers could compute the elements",
                instruction,
                Impact(memory=saved),
            )


def _broadcast_in(instruction: Instruction) -> Opcode | None:
    """The opcode of a broadcast or iota that an instruction, or a fusion, consists of."""
    value = instruction
    if instruction.opcode is Opcode.FUSION:
        value = instruction.called[0].root
        while value.opcode in _KEEP_ELEMENTS:
            value = value.operands[0]
    if value.opcode is Opcode.IOTA:
        return value.opcode
    if value.opcode is not Opcode.BROADCAST:
        return None
    source = value.operands[0]
    if _FEW * source.shape.element_count() > value.shape.element_count():
        return None
    while instruction.opcode is Opcode.FUSION and source.opcode in _KEEP_ELEMENTS:
        source = source.operands[0]
    is_given = instruction.opcode is not Opcode.FUSION or source.opcode in _GIVEN
    return value.opcode if is_given else None


_FEW = 8
"""A broadcast has at least so many elements for each element of its operand."""
_KEEP_ELEMENTS = frozenset((Opcode.BITCAST, Opcode.RESHAPE, Opcode.CONVERT))
_GIVEN = frozenset((Opcode.PARAMETER, Opcode.CONSTANT))


def _is_only_read(analysis: MemoryAnalysis, value: int) -> bool:
    """Whether nothing writes into the buffer of a value, and all that reads it could be a fusion
    that computes it."""
    if value in analysis.results or len(analysis.buffer_of(value).values) > 1:
        return False
    return all(
        use.user.opcode in _HAND_ON or can_compute(use.user) for use in analysis.flow.uses(value)
    )


def _places(analysis: MemoryAnalysis) -> dict[int, list[int]]:
    """By value the values of its place in the heap. O(values)."""
    groups = analysis.trace.groups().values()
    return {value: values for values in groups for value in values}


def _saved(view: View, value: int, place: Sequence[int]) -> int:
    """The bytes that the peak falls by without a value. O(positions).

    Where another value of its place is alive as well, which overwrites it, nothing is saved.
    """
    memory = view.subject.memory
    timeline, ranges = memory.report.timeline, memory.analysis.ranges
    start, end = ranges.start, ranges.end
    others = [other for other in place if other != value]
    first = max([start[value], *(end[o] + 1 for o in others if start[o] < start[value])])
    last = min([end[value], *(start[o] - 1 for o in others if start[o] > start[value])])
    without = max(timeline[first : last + 1], default=0) - memory.analysis.value_size(value)
    rest = max(max(timeline[:first], default=0), max(timeline[last + 1 :], default=0))
    return max(memory.report.peak - max(without, rest), 0)


_HAND_ON = frozenset((Opcode.WHILE, Opcode.CALL, Opcode.CONDITIONAL, Opcode.TUPLE, Opcode.BITCAST))
"""Opcodes that give a value to others, whose reads count on their own."""
