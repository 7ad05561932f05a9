"""Moving instructions of a loop into the trip before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import array_shape
from hloopt.ir.tuples import make_tuple, read_element
from hloopt.passes.collectives.collective_pipeliner.chains import Chain
from hloopt.passes.collectives.collective_pipeliner.copies import (
    Copier,
    Copies,
    discard,
    integer,
)
from hloopt.passes.collectives.collective_pipeliner.counted_loop import CountedLoop
from hloopt.passes.collectives.collective_pipeliner.effects import has_effect
from hloopt.passes.collectives.collective_pipeliner.options import Hook, PipelinerOptions
from hloopt.passes.collectives.collective_pipeliner.projection import projected
from hloopt.passes.rewriting.slice_places import leave_loop, restate_slices


@dataclass(slots=True)
class BackwardPipelining:
    """Lets each trip of a loop, and what comes before it, begin what the next trip needs.

    The last trip is peeled off and begins nothing. Body and condition, which nothing else calls,
    are changed in place.
    """

    loop: CountedLoop
    chains: Sequence[Chain]
    options: PipelinerOptions
    copier: Copier

    def apply(self) -> list[Instruction]:
        """Change the loop; returns all that was moved, with what it is computed from.

        O(body + users of the state and of the result).
        """
        loop, size = self.loop, self.loop.size
        moved = [chain.moved for chain in self.chains]
        members = {m for chain in self.chains for m in (*chain.members, chain.moved)}
        originals = [instruction for instruction in loop.order if instruction in members]
        groups = self.copier.new_groups(i for i in loop.order if i not in moved)
        before = self._begin_first(originals)
        next_counter = loop.root.operands[loop.counter]
        second = integer(loop.init.operands[loop.counter], loop.start + loop.step)
        reads, old_root = list(loop.instruction.users), loop.root.operands
        loop.carry([*loop.init.operands, *(before[i] for i in moved), second])
        for predecessor in loop.root.control_predecessors:
            if predecessor in before:
                loop.init.add_control_predecessor(before[predecessor])

        elements = {i: read_element(loop.state, size + number) for number, i in enumerate(moved)}
        following = [elements.get(value, value) for value in old_root]
        later = self._begin_next(originals, following)
        step = integer(next_counter, loop.step)
        following_counter = loop.body.add(Opcode.ADD, step.shape, [next_counter, step])
        loop.follow([*following, *(later[i] for i in moved), following_counter])
        for instruction, element in elements.items():
            instruction.drop_control_dependencies()
            instruction.replace_all_uses_with(element)
        self._remove(originals, later)
        self._count_one_trip_less()
        last = self._finish_last([*elements.values(), *loop.order], groups)
        result = make_tuple(loop.caller, [last[value] for value in following])
        for user in reads:
            user.set_operands([result])
        if loop.instruction.is_root:
            loop.caller.set_root(result)
        return [copies[i] for copies in (before, later) for i in originals if i in copies]

    def _begin_first(self, originals: Sequence[Instruction]) -> Copies:
        """Copy, to before the loop, what the first trip needs."""
        loop, copier = self.loop, self.copier
        copies: Copies = {loop.state: loop.init}
        made: list[Instruction] = []
        for instruction in originals:
            if loop.element_of(instruction) == loop.counter:
                copies[instruction] = loop.init.operands[loop.counter]
            else:
                made.append(copier.copy_in_order(instruction, copies, loop.caller))
        copier.regroup(made, {})
        leave_loop(made)
        self._call(self.options.postprocess_backward_peeled_op, copies)
        del copies[loop.state]
        return copies

    def _begin_next(
        self, originals: Sequence[Instruction], following: Sequence[Instruction]
    ) -> Copies:
        """Copy, to the end of a trip, what the next one needs; `following` is its state."""
        loop = self.loop
        counter = read_element(loop.state, len(loop.state.shape.elements) - 1)
        copies: Copies = {}
        for instruction in originals:
            index = loop.element_of(instruction)
            if index is None:
                self.copier.copy_in_order(instruction, copies, loop.body)
            elif index == loop.counter:
                copies[instruction] = counter
            else:
                kept = loop.element_of(following[index]) == index
                copies[instruction] = instruction if kept else projected(following[index])
        made = [copies[i] for i in originals if loop.element_of(i) is None]
        restate_slices(made, later=1, factor=1)
        self._call(self.options.postprocess_backward_rotated_op, copies)
        return copies

    def _call(self, hook: Hook | None, copies: Copies) -> None:
        if hook is not None:
            for chain in self.chains:
                hook(copies[chain.moved])

    def _remove(self, originals: Sequence[Instruction], later: Copies) -> None:
        """Remove what nothing needs any more now that the trip before has computed it."""
        root = self.loop.root
        waits_for = list(root.control_predecessors)
        discard(originals)
        for predecessor in waits_for:
            if predecessor not in self.loop.body:
                root.add_control_predecessor(later[predecessor])

    def _count_one_trip_less(self) -> None:
        """Let the condition be that this is not the last trip."""
        loop = self.loop
        counter = read_element(loop.condition.parameters[0], loop.counter)
        last = integer(counter, loop.start + (loop.trips - 1) * loop.step)
        going_on = loop.condition.add(
            Opcode.COMPARE,
            array_shape("pred"),
            [counter, last],
            attributes={"direction": "LT" if loop.step > 0 else "GT"},
        )
        loop.condition.set_root(going_on)

    def _keep_after_loop(self, made: Sequence[Instruction]) -> None:
        """Let effects of the last trip that are computed from nothing of the loop wait for it."""
        after = {self.loop.instruction}
        for copy in made:
            if after.isdisjoint((*copy.operands, *copy.control_predecessors)):
                if not has_effect(copy):
                    continue
                copy.add_control_predecessor(self.loop.instruction)
            after.add(copy)

    def _finish_last(self, body: Sequence[Instruction], groups: Mapping[int, int]) -> Copies:
        """Copy, to after the loop, the last trip, which begins nothing."""
        loop, copier = self.loop, self.copier
        copies: Copies = {loop.state: loop.instruction}
        here = set(loop.body.instructions) - {loop.state, loop.root}
        left = [i for i in body if i in here]
        made = [copier.copy_in_order(i, copies, loop.caller) for i in left]
        self._keep_after_loop(made)
        copier.regroup(made, groups)
        leave_loop(made, trip=loop.trips - 1)
        hook = self.options.postprocess_backward_peeled_trailing_op
        if hook is not None:
            for copy in made:
                hook(copy, loop.instruction)
        return copies
