"""Statistics of collectives in a run: the bytes they move, and the time spent waiting for them."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.async_operations import exchanges, is_host_transfer
from hloopt.analysis.calls import loops_with_body
from hloopt.ir import Instruction, Opcode
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.simulation.execution import ComputationRun, Simulation
from hloopt.simulation.operations import Operation


@dataclass(frozen=True, slots=True, eq=False)
class CollectiveRun:
    """One run of a computation that has collectives: of a loop's body, one trip."""

    run: ComputationRun
    loop: Instruction | None
    """The while whose body it is."""
    operations: tuple[Operation, ...]
    """Collectives, and both halves of transfers between devices."""

    @property
    def exposed(self) -> float:
        """Cycles of waiting for collectives."""
        return sum(operation.exposed for operation in self.operations)

    @property
    def moving(self) -> tuple[Operation, ...]:
        """The operations whose bytes count: a send moves those of the recv that it meets."""
        return tuple(o for o in self.operations if o.kind is not Opcode.SEND)

    @property
    def state_bytes(self) -> int:
        """The buffers that the loop keeps from trip to trip; 0 for what is not a loop's body."""
        leaves = [] if self.loop is None else self.loop.shape.leaves()
        return sum(map(shape_bytes, leaves))


def hidden_bytes(operation: Operation) -> int:
    """The bytes of an operation that move while nothing waits for it; all of what takes no time."""
    share = operation.hidden / operation.latency if operation.latency else 1.0
    return round(operation.size * share)


def collective_runs(simulation: Simulation) -> list[CollectiveRun]:
    """The runs that have collectives, callers first. O(operations)."""
    result = []
    for computation, run in reversed(simulation.runs.items()):
        operations = tuple(filter(is_collective, run.operations))
        if operations:
            loop = next(iter(loops_with_body(computation)), None)
            result.append(CollectiveRun(run, loop, operations))
    return result


def is_collective(operation: Operation) -> bool:
    """Whether devices exchange something with each other."""
    if operation.kind in (Opcode.SEND, Opcode.RECV):
        return not is_host_transfer(operation.start)
    return exchanges(operation.start)
