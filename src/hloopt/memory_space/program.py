"""A scheduled module with the analyses that memory space assignment rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloopt.analysis.dataflow import Dataflow, Position, Use, slots_of
from hloopt.analysis.dataflow.scope import control_flow_callees
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.memory.buffers import Buffers
from hloopt.memory.live_ranges import LiveRanges
from hloopt.memory_space.use_site import UseSite

TRIVIAL = (Opcode.GET_TUPLE_ELEMENT, Opcode.TUPLE, Opcode.BITCAST)
"""They pass on what they hold, without touching it."""


@dataclass(slots=True)
class Program:
    """The values, buffers and live ranges of a module, by its schedule.

    A time is a position in the flat schedule: what a called computation holds comes before its
    caller. A called computation has its parameters first, and a root that only passes on what it
    holds runs last, as what they hold is needed from and until then.
    """

    module: Module
    flow: Dataflow
    schedule: FlatSchedule
    buffers: Buffers
    ranges: LiveRanges
    asynchronous: frozenset[Computation]
    """The computations that async-starts run: what is in them is not placed."""

    @classmethod
    def of(cls, module: Module) -> Program:
        """Analyze a scheduled module. Near-linear in its slots.

        Raises HloVerifyError where its shapes, aliases or calls do not fit together.
        """
        flow = Dataflow.of(module)
        schedule = FlatSchedule.of(module, _orders(module))
        buffers = Buffers.of(flow)
        ranges = LiveRanges.of(flow, schedule, buffers)
        return cls(module, flow, schedule, buffers, ranges, _asynchronous(module))

    @property
    def end(self) -> int:
        """The number of times."""
        return len(self.schedule.steps)

    def time(self, instruction: Instruction) -> int:
        return self.schedule.times[instruction]

    def shape(self, position: Position) -> Shape:
        """The shape of what a position holds."""
        return slots_of(position.instruction.shape).parts[position.slot]

    def has(self, instruction: Instruction) -> bool:
        """Whether an instruction is a step of the schedule that is not asynchronous."""
        times = self.schedule.times
        return instruction in times and instruction.parent not in self.asynchronous

    def place_of(self, use: Use) -> UseSite:
        """A use by the shape index of what it reads."""
        index = slots_of(use.user.operands[use.operand].shape).indices[use.slot]
        return UseSite(use.user, use.operand, index)

    def entered(self, caller: Instruction) -> list[Computation]:
        """The computations that run when `caller` does, as steps of the schedule."""
        return [c for c in control_flow_callees(caller) if c in self.schedule.spans]

    def time_of_use(self, user: Instruction) -> int:
        """When an operand of `user` is needed: where a body or a branch reads its parameter."""
        times = self.schedule.times
        if user.opcode is Opcode.WHILE:
            return max(times[p] for p in user.called[0].parameters)
        if user.opcode is Opcode.CONDITIONAL:
            found = [times[p] for callee in self.entered(user) for p in callee.parameters]
            return min(found, default=times[user])
        return times[user]


def _orders(module: Module) -> dict[Computation, Sequence[Instruction]]:
    """The schedule, but that computations begin with what they are given and end with the root.

    Those of the entry stay where they are: nothing has them ready before.
    """
    orders: dict[Computation, Sequence[Instruction]] = {}
    for computation in module.computations.values():
        order, root = list(computation.instructions), computation.root
        if not computation.is_entry:
            order.sort(
                key=lambda i: i.opcode is not Opcode.PARAMETER or bool(i.control_predecessors)
            )
        is_waited_for = root.users or root.control_successors
        if root is not order[-1] and root.opcode in TRIVIAL and not is_waited_for:
            order.remove(root)
            order.append(root)
        orders[computation] = order
    return orders


def _asynchronous(module: Module) -> frozenset[Computation]:
    waiting = [
        callee for start in module.instructions(Opcode.ASYNC_START) for callee in start.called
    ]
    found: dict[Computation, None] = {}
    while waiting:
        computation = waiting.pop()
        if computation not in found:
            found[computation] = None
            waiting += [callee for i in computation.instructions for callee in i.called]
    return frozenset(found)
