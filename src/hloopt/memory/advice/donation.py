"""Arguments that could be donated: whose memory an output can take over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from hloopt.analysis.dataflow import NOTHING
from hloopt.analysis.dataflow.slots import slots_of
from hloopt.ir import Opcode
from hloopt.ir.attributes.values import Alias, parse_buffer_donor
from hloopt.ir.sources.source_stacks import op_name_of
from hloopt.memory.advice.gaps import Places
from hloopt.memory.advice.model import NO_EFFECT, Donation, Effect
from hloopt.memory.allocations import ParameterPart
from hloopt.memory.analysis import MemoryAnalysis
from hloopt.memory.limit import needed_bytes
from hloopt.memory.overwrite import Overwriting
from hloopt.memory.statistics import MemoryStatistics, statistics_of

_WORK = 100_000  # values assigned again, over all donations tried alone
_TRIED = 4  # arguments for one output


@dataclass(frozen=True, slots=True)
class _Given:
    """A part of an argument that nothing is aliased with."""

    part: ParameterPart
    value: int
    last: int
    """The position of its last read."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A part of the result that has memory of its own."""

    index: tuple[int, ...]
    value: int
    first: int
    """The position of the first write into its buffer."""


def find_donations(
    analysis: MemoryAnalysis, places: Places
) -> tuple[list[Donation], Effect, Effect]:
    """Donations that save memory, with what all save together: what is needed, and at the peak.

    A donation is an argument and an output of the same shape and layout; the argument is read for
    the last time before the output's buffer is written, or by an instruction that may overwrite
    it. Buffers are assigned again with all donations, and with each alone while that is not too
    much. Near-linear in the module, per assignment.
    """
    trials = _Trials(analysis)
    donations = list(_matches(analysis, places, trials))
    after = trials.statistics(donations) if donations else None
    before = trials.before
    if after is None or needed_bytes(after) >= needed_bytes(before):
        return [], NO_EFFECT, NO_EFFECT
    return (
        sorted(donations, key=lambda d: (-d.size, d.argument)),
        Effect(needed_bytes(before), needed_bytes(after)),
        Effect(before.peak_memory, after.peak_memory),
    )


class _Trials:
    """Buffers assigned again with donations, as often as is not too much."""

    def __init__(self, analysis: MemoryAnalysis) -> None:
        self.assignment = analysis.assignment
        self.before = statistics_of(self.assignment)
        self.left = _WORK // len(analysis.flow.definer)

    def best(self, donations: list[Donation]) -> Donation | None:
        """The one which saves most alone, or the first untried where that is too much work."""
        best, most = None, 0
        for donation in donations:
            if self.left <= 0:
                return best or donation
            self.left -= 1
            after = self.statistics([donation])
            saved = 0 if after is None else needed_bytes(self.before) - needed_bytes(after)
            if saved > most:
                best, most = replace(donation, saved=saved), saved
            if saved >= donation.size:
                break
        return best

    def statistics(self, donations: Iterable[Donation]) -> MemoryStatistics | None:
        """The statistics with donations; None where one of them would need a copy."""
        added = [Alias(d.output, d.argument.number, d.argument.part) for d in donations]
        again = self.assignment.with_aliases((*self.assignment.buffers.aliases, *added))
        if again.ranges.conflicts > self.assignment.ranges.conflicts:
            return None
        return statistics_of(again)


def _matches(analysis: MemoryAnalysis, places: Places, trials: _Trials) -> Iterator[Donation]:
    """Pairs of argument and output, each in one pair at most; earlier outputs choose first."""
    flow = analysis.flow
    overwriting = Overwriting(
        flow, analysis.assignment.buffers.in_place, analysis.assignment.backend.may_overwrite
    )
    given: dict[object, list[_Given]] = {}
    for argument in _given(analysis, places):
        given.setdefault(flow.shape(argument.value), []).append(argument)
    for output in sorted(_wanted(analysis), key=lambda o: (o.first, o.index)):
        waiting = given.get(flow.shape(output.value), [])
        fitting = (a for a in waiting if _is_over(analysis, a, output, overwriting))
        offers = [_donation(analysis, argument, output) for argument in islice(fitting, _TRIED)]
        best = trials.best(offers)
        if best is not None:
            waiting[:] = [a for a in waiting if a.part != best.argument]
            yield best


def _given(analysis: MemoryAnalysis, places: Places) -> Iterator[_Given]:
    flow = analysis.flow
    module = flow.module
    aliases = analysis.assignment.buffers.aliases
    taken = {(a.parameter, a.parameter_index) for a in aliases}
    taken |= set(parse_buffer_donor(module.attributes.get("buffer_donor", "{}")))
    for parameter in module.entry.parameters:
        indices = slots_of(parameter.shape).indices
        for value, index in zip(flow.held[parameter], indices, strict=True):
            part = ParameterPart(parameter.parameter_number, index)
            if flow.shape(value).is_tuple or part in taken or value in analysis.results:
                continue
            if analysis.value_size(value) and len(analysis.buffer_of(value).values) == 1:
                yield _Given(part, value, places.last_access(value))


def _wanted(analysis: MemoryAnalysis) -> Iterator[_Wanted]:
    flow, start = analysis.flow, analysis.ranges.start
    root = flow.module.entry.root
    seen: set[int] = set()
    for value, index in zip(flow.held[root], slots_of(root.shape).indices, strict=True):
        if value == NOTHING or value in flow.unions or flow.shape(value).is_tuple:
            continue
        buffer = analysis.buffer_of(value)
        definers = {flow.definer[member].opcode for member in buffer.values}
        is_new = not (Opcode.CONSTANT in definers or analysis.parameters & {*buffer.values})
        if is_new and buffer.number not in seen:
            seen.add(buffer.number)
            yield _Wanted(index, value, min(start[v] for v in buffer.values if start[v] >= 0))


def _is_over(
    analysis: MemoryAnalysis, given: _Given, wanted: _Wanted, overwriting: Overwriting
) -> bool:
    """Whether an argument is read no more when an output's memory is written."""
    if given.last != wanted.first:
        return given.last < wanted.first
    flow, ranges = analysis.flow, analysis.ranges
    return all(
        flow.definer[value].opcode is Opcode.COPY  # onto itself
        or overwriting.may(given.value, ranges.last_position[given.value], value)
        for value in analysis.buffer_of(wanted.value).values
        if ranges.start[value] == wanted.first
    )


def _donation(analysis: MemoryAnalysis, given: _Given, wanted: _Wanted) -> Donation:
    value = given.value
    instruction = analysis.flow.definer[value]
    return Donation(
        given.part,
        op_name_of(instruction) or analysis.name(value),
        wanted.index,
        analysis.flow.shape(value).text,
        analysis.value_size(value),
        saved=None,
    )
