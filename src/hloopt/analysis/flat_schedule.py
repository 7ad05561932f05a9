"""The order in which a whole module runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hloopt.analysis.dataflow.scope import control_flow_callees
from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Computation, Instruction, Module

Orders = Mapping[Computation, Sequence[Instruction]]
"""An order of the instructions of each computation."""


@dataclass(slots=True)
class FlatSchedule:
    """One sequence of instructions for a module: each called computation stands before its caller.

    Computations reached through call, while (condition before body), conditional and
    asynchronous starts are laid out once, at their first call; fusions and other embedded
    computations are not entered. A position is an index into `steps`. O(instructions + operands).
    """

    steps: list[Instruction]
    times: dict[Instruction, int]
    """The position of each instruction."""
    spans: dict[Computation, tuple[int, int]]
    """Per computation its first position, and the one after its last: callers that follow."""
    first_call: dict[Computation, Instruction]
    """The instruction at whose place a computation (not the entry) is laid out."""

    @classmethod
    def of(cls, module: Module, orders: Orders | None = None) -> FlatSchedule:
        """Lay out `module` by `orders`, or by its own where it has a schedule.

        Raises HloVerifyError if a computation calls itself, or an operand stands behind its user.
        """
        result = cls([], {}, {}, {})
        stack = [_Frame(module.entry, _order(module.entry, orders))]
        running = {module.entry}
        while stack:
            frame = stack[-1]
            callee = result._advance(frame)
            if callee is None:
                result.spans[frame.computation] = (frame.start, len(result.steps))
                running.remove(frame.computation)
                stack.pop()
                continue
            if callee in running:
                raise HloVerifyError(f"computation '%{callee.name}' calls itself")
            result.first_call[callee] = frame.order[frame.next]
            running.add(callee)
            stack.append(_Frame(callee, _order(callee, orders), start=len(result.steps)))
        return result

    def is_entered_by(self, callee: Computation, caller: Instruction) -> bool:
        """Whether `caller` is the call at which `callee` is laid out."""
        return self.first_call.get(callee) is caller

    def _advance(self, frame: _Frame) -> Computation | None:
        """Append steps up to a call of something not laid out yet, which is returned."""
        times, steps = self.times, self.steps
        for position in range(frame.next, len(frame.order)):
            instruction = frame.order[position]
            if instruction.called:
                for callee in control_flow_callees(instruction):
                    if callee not in self.spans:
                        frame.next = position
                        return callee
            for operand in instruction.operands:
                if operand not in times:
                    raise HloVerifyError(
                        f"'%{instruction.name}' is scheduled before its operand '%{operand.name}'",
                        span=instruction.parent.module.span_of(instruction),
                    )
            times[instruction] = len(steps)
            steps.append(instruction)
        return None


def _order(computation: Computation, orders: Orders | None) -> Sequence[Instruction]:
    return list(computation.instructions) if orders is None else orders[computation]


@dataclass(slots=True)
class _Frame:
    computation: Computation
    order: Sequence[Instruction]
    start: int = 0
    next: int = 0
