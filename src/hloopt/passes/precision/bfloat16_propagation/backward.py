"""The decisions, from results back to what they are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from hloopt.analysis.dataflow import slots_of
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.ir.ordering import computation_post_order
from hloopt.passes.precision.bfloat16_propagation.borders import (
    OWNERS,
    bodies,
    first_slot_of_result,
    is_alone,
    is_shared,
)
from hloopt.passes.precision.bfloat16_propagation.candidates import excluded
from hloopt.passes.precision.bfloat16_propagation.consumption import Consumption
from hloopt.passes.precision.bfloat16_propagation.fixed import is_fixed, is_in_host_memory
from hloopt.passes.precision.bfloat16_propagation.inner_changes import take_back_inner_changes
from hloopt.passes.precision.bfloat16_propagation.leaves import Leaves

_Steps: TypeAlias = "Iterator[_Steps]"
"""The decisions in a computation; it yields those in another one, to be taken before the rest."""


class BackwardPass:
    """Lets leaves become low whose readers all take them so, readers before what they read.

    What a computation hands back is decided with the instruction that runs it, if only one does;
    the decisions inside follow at once, so that they are known where operands are decided. The
    result is a proposal: values that meet in one leaf may have got different types.
    """

    def __init__(self, leaves: Leaves, consumption: Consumption) -> None:
        self.leaves = leaves
        self.consumption = consumption
        self._entered: set[Computation] = set()

    def run(self) -> None:
        """Decide all computations, callers first. Near-linear in uses."""
        for computation in reversed(computation_post_order(self.leaves.module)):
            if computation not in self._entered:
                self._decide(computation)

    def _decide(self, computation: Computation) -> None:
        stack = [self._steps(computation, with_parameters=False)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            else:
                stack.append(step)

    def _steps(self, computation: Computation, *, with_parameters: bool) -> _Steps:
        """Decide a computation, and all that is decided with it."""
        self._entered.add(computation)
        order = self.leaves.flow.scope.orders[computation]
        no_candidates = excluded(order, self.consumption)
        slots = self.leaves.slots
        for instruction in reversed(order):
            is_owner = instruction.opcode in OWNERS
            is_undecided = is_owner and is_shared(instruction)
            if instruction is computation.root:
                self._keep(instruction)
            elif slots[instruction.shape] and not (
                is_undecided
                or instruction in no_candidates
                or (instruction.opcode is Opcode.PARAMETER and not with_parameters)
            ):
                self._lower(instruction)
            if is_owner and not is_undecided:
                yield from self._inside(instruction)
            self.consumption.decided(instruction)

    def _keep(self, root: Instruction) -> None:
        """Let what a root holds in type high stay so, wherever it is from."""
        for slot in self.leaves.slots[root.shape]:
            if not self.leaves.is_low(root, slot):
                self.consumption.kept.update(self.leaves.values(root, slot))

    def _lower(self, instruction: Instruction) -> None:
        if not self.leaves.support.supports_output(instruction):
            return
        high = self.leaves.slots[instruction.shape]
        slots = [slot for slot in high if self.consumption.all_consume(instruction, slot)]
        if slots and not is_fixed(instruction):
            parts = slots_of(instruction.shape).parts
            for slot in slots:
                if not is_in_host_memory(parts[slot]):
                    self.leaves.lower(instruction, slot)

    def _inside(self, owner: Instruction) -> _Steps:
        """Decide what an owner runs, beginning with the types of its result."""
        if owner.opcode is Opcode.FUSION and not self.leaves.support.supports_mixed(owner):
            return
        if owner.opcode is Opcode.ASYNC_START and is_fixed(owner):
            return
        start = first_slot_of_result(owner)
        for body in bodies(owner):
            if is_alone(body) and is_fixed(body.root):
                continue
            for slot in self.leaves.slots[body.root.shape]:
                if slot + start in self.leaves.low.get(owner, ()):
                    self.leaves.lower(body.root, slot)
        for called in owner.called:
            yield self._steps(called, with_parameters=True)
        if owner.opcode is Opcode.FUSION:
            take_back_inner_changes(owner, self.leaves)
