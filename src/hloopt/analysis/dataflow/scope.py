"""The computations a dataflow covers: their order, and who runs as part of the control flow."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.ir.ordering import post_order


@dataclass(slots=True)
class Scope:
    """All computations but the bodies of fusions, and the global ones among them.

    Global computations are the entry and what it reaches through call, while, conditional and
    asynchronous starts; their values lie in memory of the module. What others apply to elements
    (reducers, comparators) runs on a thread's own memory. O(instructions + edges).
    """

    all: list[Computation]
    """Every computation in the order values are numbered in, bodies of fusions included."""
    orders: dict[Computation, list[Instruction]]
    """Instruction post-order of each covered computation."""
    is_global: dict[Computation, None]
    """The global computations, in the order of `all`."""
    ranks: dict[Instruction, int]
    """Instructions in the order values reach them: what a call runs stands before the call."""

    @classmethod
    def of(cls, module: Module) -> Scope:
        """Raises HloVerifyError for a computation that calls itself."""
        computations = _in_numbering_order(module)
        fused = _fused(computations)
        orders = {c: post_order(c) for c in computations if c not in fused}
        ranks = _ranks(module.entry, orders)
        reached = {instruction.parent for instruction in ranks}
        embedded = [c for c in orders if c not in reached]
        before = -sum(len(orders[c]) for c in embedded)
        for computation in embedded:
            for instruction in orders[computation]:
                ranks[instruction] = before
                before += 1
        is_global = dict.fromkeys(c for c in orders if c in reached)
        return cls(computations, orders, is_global, ranks)


def callees_in_order(caller: Instruction) -> tuple[Computation, ...]:
    """The computations a control-flow instruction runs, in the order it first runs them."""
    return caller.called[::-1] if caller.opcode is Opcode.WHILE else caller.called


def control_flow_callees(instruction: Instruction) -> tuple[Computation, ...]:
    """The computations `instruction` runs as control flow, in order; a start for its chain."""
    opcode = instruction.opcode
    if opcode not in CONTROL_FLOW_CALLERS or opcode in (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE):
        return ()
    return callees_in_order(instruction)


def _fused(computations: list[Computation]) -> set[Computation]:
    """The bodies of fusions, and what runs in them as control flow. Callees come first."""
    fused: set[Computation] = set()
    for computation in reversed(computations):
        if computation.is_fusion or any(
            caller.parent in fused and caller.opcode in CONTROL_FLOW_CALLERS
            for caller in computation.callers
        ):
            fused.add(computation)
    return fused


def _in_numbering_order(module: Module) -> list[Computation]:
    """The order of the text; what `X-start` implies stands right before the start's computation."""
    result: list[Computation] = []
    implied: dict[Computation, list[Computation]] = {}
    for computation in module.computations.values():
        if computation.is_sugar:
            for caller in computation.callers:
                implied.setdefault(caller.parent, []).append(computation)
    for computation in module.computations.values():
        if computation in implied:
            inside = set(implied[computation])
            for instruction in computation.instructions:
                if instruction.opcode is Opcode.ASYNC_START and instruction.called[0] in inside:
                    result.append(instruction.called[0])
        if not computation.is_sugar:
            result.append(computation)
    return result


def _ranks(
    entry: Computation, orders: dict[Computation, list[Instruction]]
) -> dict[Instruction, int]:
    ranks: dict[Instruction, int] = {}
    stack = [(entry, iter(orders[entry]))]
    entered = {entry}
    running = {entry}
    pending: list[Instruction] = []  # callers whose computations are being walked
    while stack:
        computation, rest = stack[-1]
        while True:
            instruction = pending.pop() if len(pending) == len(stack) else next(rest, None)
            if instruction is None:
                stack.pop()
                running.discard(computation)
                break
            callee = next((c for c in control_flow_callees(instruction) if c not in entered), None)
            if callee is None:
                if not running.isdisjoint(control_flow_callees(instruction)):
                    raise HloVerifyError(f"computation '%{computation.name}' calls itself")
                ranks[instruction] = len(ranks)
                continue
            pending.append(instruction)
            entered.add(callee)
            running.add(callee)
            if callee not in orders:
                raise HloVerifyError(f"'%{callee.name}' is the body of a fusion and called as well")
            stack.append((callee, iter(orders[callee])))
            break
    return ranks
