"""How much of its collectives a module can hide behind computation, or does by its schedule."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.calls import callees_first, loops_with_body
from hloopt.analysis.cost import CostAnalysis
from hloopt.analysis.cost.runs import Runs, count_runs
from hloopt.analysis.overlap.play import play_schedule, play_what_is_ready
from hloopt.analysis.overlap.times import Times
from hloopt.analysis.overlap.traffic import Transfer, transfers
from hloopt.ir.computation import Computation
from hloopt.ir.device_counts import device_counts
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.shape_size import shape_bytes
from hloopt.targets import Target


@dataclass(frozen=True, slots=True, eq=False)
class Exposure:
    """A collective, and how much of it the device computes beside."""

    transfer: Transfer
    hidden_seconds: float

    @property
    def hidden_bytes(self) -> int:
        """Bytes moved while the device computes; all of what takes no time."""
        seconds = self.transfer.seconds
        share = self.hidden_seconds / seconds if seconds else 1.0
        return round(self.transfer.byte_count * share)


@dataclass(frozen=True, slots=True, eq=False)
class ComputationOverlap:
    """One run of a computation that has collectives: of a loop's body, one trip."""

    computation: Computation
    loop: Instruction | None
    """The while whose body it is."""
    runs: Runs
    """How often it runs in one run of the module."""
    seconds: float
    compute_seconds: float
    exposures: tuple[Exposure, ...]

    @property
    def byte_count(self) -> int:
        return sum(exposure.transfer.byte_count for exposure in self.exposures)

    @property
    def hidden_bytes(self) -> int:
        """Bytes off the critical path: moved while the device computes."""
        return sum(exposure.hidden_bytes for exposure in self.exposures)

    @property
    def collective_seconds(self) -> float:
        return sum(exposure.transfer.seconds for exposure in self.exposures)

    @property
    def exposed_seconds(self) -> float:
        """How long the device waits for collectives."""
        return max(0.0, self.seconds - self.compute_seconds)  # sums in another order round apart

    @property
    def state_bytes(self) -> int:
        """The buffers that the loop keeps from trip to trip; 0 for what is no loop's body."""
        leaves = [] if self.loop is None else self.loop.shape.leaves()
        return sum(map(shape_bytes, leaves))


def analyze_overlap(module: Module, target: Target) -> list[ComputationOverlap]:
    """The computations with collectives, callers first.

    A run of each is played with one stream of computation and one of collectives. In a scheduled
    module both take what comes next in its order, and a collective in one piece stops the
    computation. Else each takes what is ready and urgent, whatever memory that needs: so what
    pipelining and combining change shows before there is a schedule.
    Times of computation are the roofline's of the target, those of collectives its fastest link's;
    that both share the memory's bandwidth is left aside. O(edges + instructions ·
    log(instructions)).
    """
    costs = CostAnalysis(module)
    runs = count_runs(module, costs)
    order = [computation for computation in callees_first(module) if computation in runs]
    times = Times(costs, target, order)
    grid = device_counts(module)
    result = []
    for computation in reversed(order):
        if computation.is_asynchronous:
            continue
        found = {transfer.start: transfer for transfer in transfers(computation, grid, target)}
        if not found:
            continue
        play = play_schedule if module.is_scheduled else play_what_is_ready
        played = play(computation, found, times)
        result.append(
            ComputationOverlap(
                computation,
                next(iter(loops_with_body(computation)), None),
                runs[computation],
                played.seconds,
                played.busy.seconds,
                tuple(
                    Exposure(transfer, played.busy.between(*played.spans[start]))
                    for start, transfer in found.items()
                ),
            )
        )
    return result
