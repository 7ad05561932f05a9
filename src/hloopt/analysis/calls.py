"""Callers and callees, read from the callers that every computation knows: O(calls)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first, post_order


def calls_by_computation(
    module: Module, order: Callable[[Computation], Iterable[Instruction]] = post_order
) -> dict[Computation, list[Instruction]]:
    """The instructions that call something, by the computation they are in.

    In post-order, or as `order` gives them, which saves time; in the order of the schedule where
    there is one.
    """
    return {
        computation: _in_order(computation, found, order)
        for computation, found in unordered_calls(module).items()
    }


def unordered_calls(module: Module) -> dict[Computation, dict[Instruction, None]]:
    """The instructions that call something, by the computation they are in. O(calls)."""
    calls: dict[Computation, dict[Instruction, None]] = {}
    for computation in module.computations.values():
        for caller in computation.callers:
            calls.setdefault(caller.parent, {})[caller] = None
    return calls


def _in_order(
    computation: Computation,
    calls: dict[Instruction, None],
    order: Callable[[Computation], Iterable[Instruction]],
) -> list[Instruction]:
    if len(calls) == 1:
        return list(calls)
    scheduled = computation.module.is_scheduled
    ordered = computation.instructions if scheduled else order(computation)
    return [instruction for instruction in ordered if instruction in calls]


def callees_first(
    module: Module, calls: Mapping[Computation, Sequence[Instruction]] | None = None
) -> list[Computation]:
    """All computations, callees before callers, from those without callers in module order.

    `calls` saves the time to find them: what `calls_by_computation` gives.
    """
    found = calls_by_computation(module) if calls is None else calls

    def callees(computation: Computation) -> list[Computation]:
        return [callee for call in found.get(computation, ()) for callee in call.called]

    roots = [c for c in module.computations.values() if not c.callers]
    return depth_first(roots, callees)


def loops_with_body(computation: Computation) -> list[Instruction]:
    """The while loops whose body a computation is. O(callers)."""
    return [
        caller
        for caller in computation.callers
        if caller.opcode is Opcode.WHILE and caller.called[0] is computation
    ]


def reachable_from_entry(module: Module) -> set[Computation]:
    """The entry and all it calls, directly or not."""
    calls = unordered_calls(module)
    found = {module.entry}
    stack = [module.entry]
    while stack:
        for call in calls.get(stack.pop(), ()):
            for callee in call.called:
                if callee not in found:
                    found.add(callee)
                    stack.append(callee)
    return found
