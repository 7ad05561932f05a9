"""The computations a dataflow covers: their order, and who runs as part of the control flow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.analysis.dataflow.forwarding import FORWARDING
from hloopt.analysis.dataflow.kept_order import kept_order
from hloopt.diagnostics import HloVerifyError
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.ir.ordering import post_order


@dataclass(slots=True)
class Scope:
    """The computations a dataflow covers, and the global ones among them.

    These are all that run outside of fusions, and the bodies of fusions where they are wanted.

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
    """Order of propagation, of the instructions that may hold values of others: callees come before
    their callers."""

    @classmethod
    def of(
        cls,
        module: Module,
        leave_out: Callable[[Computation], bool] | None = None,
        *,
        in_fusions: bool = False,
        before_printing: bool = False,
    ) -> Scope:
        """The scope of a module, without computations for which `leave_out` holds.

        Control flow must not run those left out. With `in_fusions` the bodies of fusions are
        covered, too. With `before_printing` instructions and computations are in the order of the
        compiler that printed a scheduled module (see `post_order`, `kept_order`). Raises
        HloVerifyError for a computation that calls itself.
        """
        computations = _in_numbering_order(module)
        if before_printing:
            computations = _rearranged(computations, kept_order(module))
        fused = fused_computations(computations)
        covered = set(computations) if in_fusions else _covered(computations, fused)
        if leave_out is not None:
            computations = [c for c in computations if not leave_out(c)]
        orders = {
            c: post_order(c, before_printing=before_printing) for c in computations if c in covered
        }
        ranks, reached = _ranks(module.entry, orders, fused)
        embedded = [i for c in orders if c not in reached for i in orders[c] if may_hold_others(i)]
        ranks.update(zip(embedded, range(-len(embedded), 0), strict=True))
        is_global = dict.fromkeys(c for c in orders if c in reached)
        return cls(computations, orders, is_global, ranks)


_FUSION = Opcode.FUSION  # a member of an enum is slow to look up in a loop
_MERGES = frozenset((Opcode.PARAMETER, Opcode.WHILE, Opcode.CONDITIONAL))
MAY_HOLD_OTHERS = FORWARDING | _MERGES


def may_hold_others(instruction: Instruction) -> bool:
    """Whether the result of an instruction may hold values that others define. O(1)."""
    return instruction.opcode in MAY_HOLD_OTHERS


def callees_in_order(caller: Instruction) -> tuple[Computation, ...]:
    """The computations a control-flow instruction runs, in the order it first runs them."""
    return caller.called[::-1] if caller.opcode is Opcode.WHILE else caller.called


def control_flow_callees(instruction: Instruction) -> tuple[Computation, ...]:
    """The computations `instruction` runs as control flow, in order; a start for its chain."""
    opcode = instruction.opcode
    if opcode not in CONTROL_FLOW_CALLERS or opcode in (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE):
        return ()
    return callees_in_order(instruction)


def fused_computations(computations: list[Computation]) -> set[Computation]:
    """The bodies of fusions, and the computations that control flow in them runs.

    `computations` are all of a module, callees before callers. O(calls).
    """
    fused: set[Computation] = set()
    for computation in reversed(computations):
        for caller in computation.callers:
            opcode = caller.opcode
            if opcode is _FUSION or (opcode in CONTROL_FLOW_CALLERS and caller.parent in fused):
                fused.add(computation)
                break
    return fused


def _covered(computations: list[Computation], fused: set[Computation]) -> set[Computation]:
    """The computations that do not run in fusions only: a reducer may call the body of one.

    `computations` are all of a module, callees before callers. O(calls).
    """
    covered: set[Computation] = set()
    for computation in reversed(computations):
        if computation not in fused:
            covered.add(computation)
            continue
        for caller in computation.callers:
            if caller.opcode in CONTROL_FLOW_CALLERS and caller.parent in covered:
                covered.add(computation)
                break
    return covered


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


def _rearranged(computations: list[Computation], order: list[Computation]) -> list[Computation]:
    """The list, with those of its elements that are in `order` in that order."""
    found = set(order)
    following = iter(order)
    return [next(following) if c in found else c for c in computations]


def _ranks(
    entry: Computation, orders: dict[Computation, list[Instruction]], fused: set[Computation]
) -> tuple[dict[Instruction, int], set[Computation]]:
    """Ranks of instructions, and the computations that the entry reaches through control flow."""
    ranks: dict[Instruction, int] = {}
    stack = [(entry, iter(orders[entry]))]
    entered = {entry}
    running = {entry}
    pending: list[Instruction] = []  # callers whose computations are being walked
    while stack:
        computation, rest = stack[-1]
        callee = None
        if len(pending) == len(stack):
            callee = _enter(pending.pop(), ranks, entered, running, pending)
        for instruction in rest if callee is None else ():
            opcode = instruction.opcode
            if opcode in _ENTERING:
                callee = _enter(instruction, ranks, entered, running, pending)
                if callee is not None:
                    break
            elif opcode in MAY_HOLD_OTHERS:
                ranks[instruction] = len(ranks)
        if callee is None:
            stack.pop()
            running.discard(computation)
            continue
        if callee in fused:
            raise HloVerifyError(f"'%{callee.name}' is the body of a fusion and called as well")
        stack.append((callee, iter(orders[callee])))
    return ranks, entered


_ENTERING = CONTROL_FLOW_CALLERS - {Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE}


def _enter(
    caller: Instruction,
    ranks: dict[Instruction, int],
    entered: set[Computation],
    running: set[Computation],
    pending: list[Instruction],
) -> Computation | None:
    """The next callee to walk; None if all are entered, and then the caller gets its rank."""
    callees = control_flow_callees(caller)
    callee = next((c for c in callees if c not in entered), None)
    if callee is None:
        if not running.isdisjoint(callees):
            raise HloVerifyError(f"computation '%{caller.parent.name}' calls itself")
        ranks[caller] = len(ranks)
        return None
    pending.append(caller)
    entered.add(callee)
    running.add(callee)
    return callee
