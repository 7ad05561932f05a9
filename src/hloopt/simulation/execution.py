"""One run of a module by its schedule."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Literal, TypeAlias

from hloopt.analysis.calls import callees_first
from hloopt.analysis.gpu_async import is_gpu_begin, is_gpu_end
from hloopt.analysis.latency import LatencyModel, Origin, Time
from hloopt.analysis.loops.trip_count import trip_count
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.simulation.bandwidth import Bandwidth
from hloopt.simulation.clock import Clock, SharedClock
from hloopt.simulation.operations import Operation
from hloopt.simulation.streams import Streams

Loops: TypeAlias = Literal["trips", "once", "cost"]
"""The time a loop takes: all its trips, one trip, or what the model says of the instruction, as in
XLA's figures. The last goes for calls and conditionals as well."""

_ENTERED = (Opcode.WHILE, Opcode.CALL, Opcode.CONDITIONAL)


@dataclass(slots=True)
class ComputationRun:
    """One run of a computation by itself. Times are cycles since it began."""

    computation: Computation
    order: Sequence[Instruction]
    begin: list[float] = field(default_factory=list)
    """By position, when the main stream comes to an instruction."""
    end: list[float] = field(default_factory=list)
    """By position, when it is through with it, waiting aside."""
    work: list[float] = field(default_factory=list)
    """By position, how long that takes where nothing slows it down."""
    origins: list[Origin | None] = field(default_factory=list)
    """By position, who says so; None where the main stream does nothing itself: it waits for an
    operation at once, or runs what is called."""
    operations: list[Operation] = field(default_factory=list)
    """Those with start and done here, by done."""
    calls: dict[Instruction, list[tuple[Computation, int]]] = field(default_factory=dict)
    """Loops, calls and conditionals: what each runs, and how often."""
    unpaired: list[Instruction] = field(default_factory=list)
    """Starts and dones whose other half is elsewhere, in another trip of a loop for example."""
    duration: float = 0.0
    demand: float = 0.0
    """The share of the bandwidth it wants on average, if bandwidth is shared."""
    runs: int = 0
    """The number of times it runs in one run of the module."""
    runs_known: bool = True
    """Whether that is known; loops of unknown trip counts take one trip."""
    timed: float = 0.0
    """Cycles of its own work and of its operations, at full speed."""
    guessed: float = 0.0
    """Of these, how many the model does not know: something stands in."""

    @property
    def exposed(self) -> float:
        """Cycles of waiting in one run, computations it calls aside."""
        return sum(operation.exposed for operation in self.operations)

    @property
    def positions(self) -> dict[Instruction, int]:
        """The position of each instruction. O(instructions)."""
        return {instruction: position for position, instruction in enumerate(self.order)}

    def work_under(self, operation: Operation, most: int = 10) -> list[tuple[Instruction, float]]:
        """The work of the main stream while an operation is in flight, and its time; the longest
        `most`.

        O(log instructions), and linear in those under it.
        """
        first = bisect_right(self.end, operation.begin)
        overlaps = []
        for position in range(first, len(self.order)):
            if self.begin[position] >= operation.finish:
                break
            begin = max(self.begin[position], operation.begin)
            time = min(self.end[position], operation.finish) - begin
            if time > 0 and self.order[position] is not operation.done:
                overlaps.append((self.order[position], time))
        return nlargest(most, overlaps, key=lambda overlap: overlap[1])


@dataclass(slots=True)
class Simulation:
    """One run of a module."""

    module: Module
    model: LatencyModel
    loops: Loops
    runs: dict[Computation, ComputationRun] = field(default_factory=dict)
    """The computations that run: the entry, loops, branches and calls; callees first."""
    unknown_loops: list[Instruction] = field(default_factory=list)
    """Loops that run whose trip count is not known."""
    guessed: list[Instruction] = field(default_factory=list)
    """Instructions and starts of operations whose time the model guesses."""
    unknown: list[Instruction] = field(default_factory=list)
    """Those of which it cannot even guess: they take no time."""

    @property
    def entry(self) -> ComputationRun:
        return self.runs[self.module.entry]

    @property
    def makespan(self) -> float:
        """Cycles from the first instruction to the last."""
        return self.entry.duration

    @property
    def exposed(self) -> float:
        """Cycles of waiting for operations, all runs together."""
        return sum(run.exposed * run.runs for run in self.runs.values())

    @property
    def guessed_share(self) -> float:
        """The part of all work and operations, all runs together, is guessed; from 0 to 1."""
        timed = sum(run.timed * run.runs for run in self.runs.values())
        guessed = sum(run.guessed * run.runs for run in self.runs.values())
        return guessed / timed if timed else 0.0

    def exposed_by_kind(self) -> dict[Opcode, float]:
        """Of each kind of operation there is, cycles of waiting for it, all runs together."""
        result: dict[Opcode, float] = {}
        for run, operation in self.operations():
            total = result.get(operation.kind, 0.0)
            result[operation.kind] = total + operation.exposed * run.runs
        return result

    def operations(self) -> Iterator[tuple[ComputationRun, Operation]]:
        """Every operation, with the computation it is in; callees first."""
        for run in self.runs.values():
            for operation in run.operations:
                yield run, operation


def simulate(
    module: Module,
    model: LatencyModel,
    streams: Streams,
    *,
    loops: Loops = "trips",
    bandwidth: Bandwidth | None = None,
) -> Simulation:
    """Run a module in the order in which its instructions stand.

    The main stream takes one instruction after another. A start begins an operation on its
    stream, a done waits for it, and for a synchronous collective or transfer the main stream waits
    at once; a synchronous call or copy is its work. These are XLA's figures
    (`analysis.latency.statistics`), but for limits of streams, what is called, and what is
    synchronous; `RunTimes` is the model for times that have none of XLA's constants among them. A
    computation runs by itself: operations that its caller has under way do not matter to it. Of a
    conditional the branch that takes longest runs. With `bandwidth` what runs at the same time
    shares it (`SharedClock`). O(instructions), and with `bandwidth` times the operations under way.
    """
    return _Simulator(module, model, streams, loops, bandwidth).run()


class _Simulator:
    def __init__(
        self,
        module: Module,
        model: LatencyModel,
        streams: Streams,
        loops: Loops,
        bandwidth: Bandwidth | None,
    ) -> None:
        self.streams = streams
        self.bandwidth = bandwidth
        self.result = Simulation(module, model, loops)

    def run(self) -> Simulation:
        for computation in self._entered_computations():
            self.result.runs[computation] = self._run(computation)
        self._count_runs()
        return self.result

    def _entered_computations(self) -> list[Computation]:
        """The entry and what it enters, callees first."""
        module = self.result.module
        found = {module.entry}
        stack = [module.entry]
        while stack:
            for caller in stack.pop().instructions:
                if caller.opcode in _ENTERED:
                    new = [callee for callee in caller.called if callee not in found]
                    found.update(new)
                    stack += new
        return [computation for computation in callees_first(module) if computation in found]

    def _run(self, computation: Computation) -> ComputationRun:
        streams = self.streams
        run = ComputationRun(computation, list(computation.instructions))
        clock = Clock() if self.bandwidth is None else SharedClock()
        under_way: dict[Instruction, Operation] = {}
        done_of = {d.operands[0]: d for d in run.order if streams.is_done(d)}
        dones = set(done_of.values())
        traffic = 0.0
        for instruction in run.order:
            if instruction.opcode in _ENTERED:
                run.calls[instruction] = self._calls(instruction)
            run.begin.append(clock.now)
            is_whole = self._waits_at_once(instruction)
            cost, origin, demand = 0.0, None, 0.0
            if not is_whole:
                cost, origin, demand = self._work(run, instruction)
            clock.run(cost, demand)
            run.work.append(cost)
            run.origins.append(origin)
            traffic += cost * demand
            run.end.append(clock.now)
            if is_whole:
                operation = self._synchronous_operation(run, instruction)
                traffic += self._launch(operation, clock)
                clock.wait(operation)
                run.operations.append(operation)
            elif streams.is_start(instruction):
                done = done_of.get(instruction)
                if done is None:
                    run.unpaired.append(instruction)
                    continue
                operation = under_way[instruction] = self._operation(run, instruction, done)
                traffic += self._launch(operation, clock)
            elif instruction in dones:
                waited_for = under_way.get(instruction.operands[0])
                if waited_for is None:
                    run.unpaired.append(instruction)
                    continue
                clock.wait(waited_for)
                run.operations.append(waited_for)
        run.duration = clock.now
        run.demand = traffic / run.duration if run.duration else 0.0
        return run

    def _waits_at_once(self, instruction: Instruction) -> bool:
        """Whether the main stream waits for all of it; XLA reckons as with other instructions."""
        return self.result.loops != "cost" and self.streams.is_synchronous(instruction)

    def _operation(self, run: ComputationRun, start: Instruction, done: Instruction) -> Operation:
        stream, model = self.streams.of(start), self.result.model
        # Models, as XLA's schedulers, know no latency between the two halves of a slice.
        is_slice = self.streams.moves_slice(start)
        time = model.whole_time(start) if is_slice else model.edge_time(start, done)
        time = self._counted(run, start, time)
        return Operation(start, done, stream, time.cycles, origin=time.origin)

    def _synchronous_operation(self, run: ComputationRun, start: Instruction) -> Operation:
        ends = filter(is_gpu_end, start.users if is_gpu_begin(start) else ())
        time = self._counted(run, start, self.result.model.whole_time(start))
        stream, done = self.streams.of(start), next(ends, start)
        return Operation(start, done, stream, time.cycles, origin=time.origin)

    def _counted(self, run: ComputationRun, instruction: Instruction, time: Time) -> Time:
        """The time; notes where it is a guess, or unknown."""
        run.timed += time.cycles
        if time.origin is Origin.GUESS:
            run.guessed += time.cycles
            self.result.guessed.append(instruction)
        elif time.origin is Origin.UNKNOWN:
            self.result.unknown.append(instruction)
        return time

    def _launch(self, operation: Operation, clock: Clock) -> float:
        """Begin an operation; the bandwidth that it wants, for as long as it takes."""
        wanted = 0.0 if self.bandwidth is None else self.bandwidth.of_operation(operation)
        clock.launch(operation, wanted)
        return operation.latency * wanted

    def _work(
        self, run: ComputationRun, instruction: Instruction
    ) -> tuple[float, Origin | None, float]:
        """The time the main stream is busy with an instruction, who says so, and the bandwidth it
        wants."""
        calls = run.calls.get(instruction)
        if calls is None or self.result.loops == "cost":
            cost, origin = self._counted(run, instruction, self._own_time(instruction))
            if self.bandwidth is None or cost <= 0:
                return cost, origin, 0.0
            return cost, origin, self.bandwidth.of_work(instruction)
        called = [(self.result.runs[callee], times) for callee, times in calls]
        duration = sum(callee.duration * times for callee, times in called)
        traffic = sum(callee.duration * times * callee.demand for callee, times in called)
        return duration, None, traffic / duration if duration else 0.0

    def _own_time(self, instruction: Instruction) -> Time:
        model = self.result.model
        if self.result.loops != "cost" and self.streams.is_whole_work(instruction):
            return model.whole_time(instruction)
        return model.node_time(instruction)

    def _calls(self, instruction: Instruction) -> list[tuple[Computation, int]]:
        """The computations that an instruction runs, and how often."""
        if instruction.opcode is Opcode.WHILE:
            trips = self._trip_count(instruction)
            body, condition = instruction.called
            return [(condition, trips + 1), (body, trips)]
        if instruction.opcode is Opcode.CONDITIONAL:
            runs = self.result.runs
            return [(max(instruction.called, key=lambda branch: runs[branch].duration), 1)]
        return [(instruction.called[0], 1)]

    def _trip_count(self, loop: Instruction) -> int:
        """The number of trips that are made; one where that is not known."""
        if self.result.loops == "once":
            return 1
        count = trip_count(loop)
        if count is None:
            self.result.unknown_loops.append(loop)
            return 1
        return count

    def _count_runs(self) -> None:
        runs, unknown = self.result.runs, set(self.result.unknown_loops)
        runs[self.result.module.entry].runs = 1
        for run in reversed(list(runs.values())):
            for caller, calls in run.calls.items():
                for callee, times in calls:
                    runs[callee].runs += run.runs * times
                    runs[callee].runs_known &= run.runs_known and caller not in unknown
