"""A number for every instruction, by which values of one buffer are put in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hloopt.analysis.dataflow.scope import Scope, control_flow_callees
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.passes.copy_insertion.execution_order import Positions


def number_instructions(
    module: Module, scope: Scope, positions: Positions | None
) -> dict[Instruction, int]:
    """Number instructions as they run, as far as that is fixed: an extension of all orders.

    The entry comes first, depth first: parameters, then instructions in the order of the schedule
    or in post-order, what a call runs before the call, the condition of a loop before its body.
    O(instructions + calls).
    """
    numbers: dict[Instruction, int] = {}
    entered: set[Computation] = set()
    for start in (module.entry, *scope.orders):
        if start in entered:
            continue
        entered.add(start)
        stack = [_Frame(_in_order(start, scope, positions))]
        while stack:
            frame = stack[-1]
            callee = next((c for c in frame.callees if c not in entered), None)
            if callee is not None:
                entered.add(callee)
                stack.append(_Frame(_in_order(callee, scope, positions)))
                continue
            if frame.pending is not None:
                numbers[frame.pending] = len(numbers)
            frame.pending = next(frame.rest, None)
            if frame.pending is None:
                stack.pop()
            else:
                frame.callees = control_flow_callees(frame.pending)
    return numbers


class _Frame:
    """A computation on the way: what is left of it, and the instruction whose callees are due."""

    def __init__(self, rest: Iterator[Instruction]) -> None:
        self.rest = rest
        self.pending: Instruction | None = None
        self.callees: tuple[Computation, ...] = ()


def _in_order(
    computation: Computation, scope: Scope, positions: Positions | None
) -> Iterator[Instruction]:
    order: Iterable[Instruction] = scope.orders[computation]
    if positions is not None:
        order = positions[computation]
    yield from (i for i in order if i.opcode is Opcode.PARAMETER)
    yield from (i for i in order if i.opcode is not Opcode.PARAMETER)
