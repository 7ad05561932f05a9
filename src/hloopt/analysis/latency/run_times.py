"""The times of a run by a model: for reports, and for the search of schedules."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from hloopt.analysis.async_operations import SYNC_COLLECTIVES
from hloopt.analysis.cost.custom_calls import custom_call_cost
from hloopt.analysis.gpu_async import is_gpu_begin, is_gpu_end
from hloopt.analysis.latency.estimates import Estimates, host_bytes, is_nothing
from hloopt.analysis.latency.model import (
    FREE_TIME,
    LatencyModel,
    Origin,
    TableTime,
    Time,
    stated_latency,
)
from hloopt.analysis.loops.trip_count import trip_count
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.opcode import ASYNC
from hloopt.ir.ordering import depth_first
from hloopt.targets.target import Target

_UNKNOWN_TIME = Time(0.0, Origin.UNKNOWN)
_STEP_TIME = Time(1.0, Origin.CONSTANT)
"""The cost of a collective's start or done in XLA's models in microseconds."""
_MEASURED = (Origin.TABLE, Origin.PROFILE)
_TABLE = Origin.TABLE  # a member of an enum is slow to look up in a loop
_NOT_KNOWN = (Origin.CONSTANT, Origin.GUESS, Origin.UNKNOWN)
CONTROL_FLOW = frozenset((Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL))


class RunTimes(LatencyModel):
    """The time the parts of one module take in a run.

    XLA's models answer its schedulers. For what they do not know they give the constants of
    `FixedModel`; next to real times its 5000 would be 5 ms for any copy, and for a collective that
    is not split. Here such a time is an estimate by the rates of the model's target (`Estimates`),
    or unknown and 0 without a target. An operation takes the same time whether other work may run
    beside it or not. The times of a model of abstract units are left as they are.

    Remembers what it was asked: ask before changing the module.
    """

    def __init__(self, model: LatencyModel, module: Module) -> None:
        self.model = model
        """The model as XLA's schedulers ask it."""
        self._module = module
        self._estimates: Estimates | None = None
        self._guesses: dict[Instruction, Time] = {}
        self._operations: dict[Instruction, Time] = {}
        self._computations: dict[Computation, Time] = {}

    @property
    def cycles_per_microsecond(self) -> float:
        return self.model.cycles_per_microsecond

    @property
    def is_abstract(self) -> bool:
        return self.model.is_abstract

    @property
    def target(self) -> Target | None:
        return self.model.target

    def node_time(self, instruction: Instruction) -> Time:
        """As that of the model; of a collective that is not split as long as it takes. O(fused
        instructions) the first time."""
        time = self.model.node_time(instruction)
        is_whole = instruction.opcode in SYNC_COLLECTIVES
        if time.origin is _TABLE and not is_whole:
            return time  # whatever it is: of most instructions there is no more to ask
        if self.is_abstract:
            return time
        if is_whole:
            return self.whole_time(instruction)
        if is_gpu_begin(instruction) or is_gpu_end(instruction) or instruction.opcode in ASYNC:
            return self._step_time(time)
        if instruction.opcode in CONTROL_FLOW:
            return time
        if time.origin is not Origin.GUESS:
            return self._with_host(instruction, time)
        if is_nothing(instruction):
            return FREE_TIME
        estimates = self._estimated()
        if estimates is None:
            return _UNKNOWN_TIME
        guess = self._guesses.get(instruction)
        if guess is None:
            guess = self._guesses[instruction] = _guess(instruction, time, estimates)
        return guess

    def edge_time(self, source: Instruction, target: Instruction) -> Time:
        """From start to done of an operation, however it is scheduled, else that of the model."""
        if is_gpu_begin(source) and is_gpu_end(target) and target.operands[0] is source:
            return self._operation_time(source, target)
        return self.model.edge_time(source, target)

    def whole_time(self, collective: Instruction) -> Time:
        """The time from start to done, also of an operation that is not a collective: a copy, a
        call. Linear in what it calls the first time."""
        done = None
        if is_gpu_begin(collective):
            done = next(filter(is_gpu_end, collective.users), None)
        return self._operation_time(collective, done)

    def by_table(self, instruction: Instruction) -> TableTime | None:
        """O(1) beside the model."""
        return self.model.by_table(instruction)

    # -- steps and operations -------------------------------------------------------------------

    def _step_time(self, time: Time) -> Time:
        """The time of a start or done itself, for a model that may give it that of the whole
        operation."""
        if time.origin in (Origin.TABLE, Origin.FREE, *_NOT_KNOWN):
            return time
        return _STEP_TIME

    def _operation_time(self, start: Instruction, done: Instruction | None) -> Time:
        time = self._operations.get(start)
        if time is None:
            time = self._operations[start] = self._new_operation_time(start, done)
        return time

    def _new_operation_time(self, start: Instruction, done: Instruction | None) -> Time:
        whole = self.model.whole_time(start)
        split = None if done is None else self.model.edge_time(start, done)
        if self.is_abstract:
            return whole if split is None else split
        for time in (split, whole):
            if time is not None and time.origin in _MEASURED:
                return time
        stated = stated_latency(start, self.cycles_per_microsecond)
        if stated is not None:
            return Time(stated, Origin.STATED)
        for time in (split, whole):
            if time is not None and time.origin not in _NOT_KNOWN:
                return self._with_host(start, time)
        return self._estimate(start)

    def _estimate(self, start: Instruction) -> Time:
        if start.opcode is Opcode.ASYNC_START:
            return self._inside(start.called[0])
        estimates = self._estimated()
        if estimates is None:
            return _UNKNOWN_TIME
        if start.opcode is Opcode.COPY_START:
            return Time(estimates.copy(start).cycles, Origin.GUESS)
        return Time(estimates.exchange(start).cycles, Origin.GUESS)

    def _with_host(self, instruction: Instruction, time: Time) -> Time:
        """XLA's models take the memory of the host for that of the device: transfers take as long
        as the link to the host does."""
        if time.origin in (Origin.PROFILE, Origin.FREE) or not self._has_host_memory:
            return time
        if instruction.opcode is Opcode.ASYNC_START:
            instruction = instruction.called[0].root
        elif is_gpu_begin(instruction):
            return time
        estimates = self._estimated()
        return time if estimates is None else estimates.with_host(instruction, time)

    @cached_property
    def _has_host_memory(self) -> bool:
        """Whether any value is in the memory of the host."""
        return any(host_bytes(instruction.shape) for instruction in self._module.instructions())

    def _estimated(self) -> Estimates | None:
        if self._estimates is None and self.target is not None:
            self._estimates = Estimates(self._module, self.target)
        return self._estimates

    # -- what is called -------------------------------------------------------------------------

    def called_time(self, caller: Instruction) -> Time:
        """The time of what control flow or an async-start runs. Linear in that the first time."""
        if caller.opcode not in CONTROL_FLOW:
            return self._inside(caller.called[0])
        for callee in caller.called:
            self._inside(callee)
        return self._calls(caller)

    def _inside(self, called: Computation) -> Time:
        """One run of a computation, an instruction after the other. Linear the first time."""

        def new_callees(computation: Computation) -> Iterable[Computation]:
            for instruction in computation.instructions:
                if instruction.opcode in _ENTERED:
                    yield from (c for c in instruction.called if c not in self._computations)

        if called not in self._computations:
            for computation in depth_first([called], new_callees):
                self._computations[computation] = _sum(map(self._part, computation.instructions))
        return self._computations[called]

    def _part(self, instruction: Instruction) -> Time:
        opcode = instruction.opcode
        if opcode in CONTROL_FLOW:
            return self._calls(instruction)
        if is_gpu_begin(instruction):
            return self.whole_time(instruction)
        if is_gpu_end(instruction) or opcode in ASYNC:
            return FREE_TIME
        return self.node_time(instruction)

    def _calls(self, caller: Instruction) -> Time:
        """Loops of unknown trip counts take one trip, of a conditional the longest branch runs."""
        times = [self._computations[callee] for callee in caller.called]
        if caller.opcode is Opcode.CONDITIONAL:
            return max(times, key=lambda time: time.cycles)
        if caller.opcode is Opcode.WHILE:
            trips = trip_count(caller)
            count = 1 if trips is None else trips
            body, condition = times
            times = [
                Time(body.cycles * count, body.origin),
                Time(condition.cycles * (count + 1), condition.origin),
            ]
        return _sum(times)


_ENTERED = CONTROL_FLOW | {Opcode.ASYNC_START}


def _guess(instruction: Instruction, time: Time, estimates: Estimates) -> Time:
    """An estimate in place of a model's guess."""
    work = estimates.work(instruction)
    if work.origin is Origin.FREE:
        return work
    known = custom_call_cost(instruction) if instruction.opcode is Opcode.CUSTOM_CALL else None
    least = time.cycles if known is None else 0.0  # a constant is for what may do anything
    return Time(max(least, work.cycles), Origin.GUESS)


def _sum(parts: Iterable[Time]) -> Time:
    """All of them one after another; from where the longest is, unless something is not known."""
    times = list(parts)
    total = sum(time.cycles for time in times)
    origins = {time.origin for time in times}
    for origin in (Origin.UNKNOWN, Origin.GUESS):
        if origin in origins:
            return Time(total, origin)
    longest = max(times, key=lambda time: time.cycles, default=FREE_TIME)
    return Time(total, longest.origin)
