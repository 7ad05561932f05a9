"""A number for every instruction, by which values of one buffer are put in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hloopt.analysis.dataflow.scope import Scope, control_flow_callees
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
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
        stack = [_walk(start, scope, positions, numbers, entered)]
        while stack:
            callee = next(stack[-1], None)
            if callee is None:
                stack.pop()
            else:
                stack.append(_walk(callee, scope, positions, numbers, entered))
    return numbers


def _walk(
    computation: Computation,
    scope: Scope,
    positions: Positions | None,
    numbers: dict[Instruction, int],
    entered: set[Computation],
) -> Iterator[Computation]:
    """Number a computation; yields each callee when it has to be numbered."""
    order: Iterable[Instruction] = scope.orders[computation]
    if positions is not None:
        order = positions[computation]
    for instruction in order:
        if instruction.opcode is Opcode.PARAMETER:
            numbers[instruction] = len(numbers)
    run: list[Instruction] = []  # one after the other, with no call in between
    for instruction in order:
        opcode = instruction.opcode
        if opcode in CONTROL_FLOW_CALLERS:
            _number(run, numbers)
            run = []
            for callee in control_flow_callees(instruction):
                if callee not in entered:
                    entered.add(callee)
                    yield callee
        if opcode is not Opcode.PARAMETER:
            run.append(instruction)
    _number(run, numbers)


def _number(run: list[Instruction], numbers: dict[Instruction, int]) -> None:
    numbers.update(zip(run, range(len(numbers), len(numbers) + len(run)), strict=True))
