"""Loops that stand unrolled in a schedule."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from hloopt.analysis.content import Content
from hloopt.analysis.fingerprint import LEFT_OUT
from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.ordering import stable_computation_order

SHORTEST, LONGEST = 4, 400
"""The steps of an iteration, at least and at most."""
LEAST_ITERATIONS = 3
"""An iteration is planned with the one before and the one after it."""
_HEADSTART = 10
"""The steps before the first repeated one that may belong to the loop."""
_PASSED_ON = (Opcode.PARAMETER, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT)
"""Opcodes that compute nothing: they repeat whatever they pass on."""


@dataclass(frozen=True, slots=True)
class UnrolledLoop:
    """Consecutive iterations of as many steps each, from a time of the schedule on."""

    start: int
    size: int
    iterations: int

    @property
    def end(self) -> int:
        """The time after the last iteration."""
        return self.start + self.size * self.iterations


def find_loops(
    module: Module, schedule: FlatSchedule, min_iterations: float = LEAST_ITERATIONS
) -> list[UnrolledLoop]:
    """The loops of at least so many iterations, in order; they do not overlap.

    An instruction that is like the one `size` steps before starts a scan. O(operands of all steps)
    for each length that occurs; each run of repeated steps is scanned once per length.
    """
    comparison = _Comparison(module, schedule)
    found: list[UnrolledLoop] = []
    seen: dict[Hashable, int] = {}
    scanned: dict[int, int] = {}
    free = 0
    for time, step in enumerate(schedule.steps):
        if time < free or step.opcode in _PASSED_ON:
            continue
        label = comparison.label(step)
        before = seen.get(label, -1)
        seen[label] = time
        size = time - before
        if before < max(free, scanned.get(size, 0)) or not SHORTEST <= size <= LONGEST:
            continue
        first, behind = comparison.run(before, size, free)
        scanned[size] = behind
        iterations = (behind - first) // size + 1
        if behind > first and iterations >= max(min_iterations, LEAST_ITERATIONS):
            found.append(UnrolledLoop(first, size, iterations))
            free = found[-1].end
    return found


class _Comparison:
    """Tells whether steps are the same step of two iterations."""

    def __init__(self, module: Module, schedule: FlatSchedule) -> None:
        self._schedule = schedule
        self._content = Content(LEFT_OUT)
        self._bodies: dict[Computation, int] = {}
        self._labels: dict[Instruction, Hashable] = {}
        numbers: dict[Hashable, int] = {}
        for computation in stable_computation_order(module):  # callees first
            if not computation.is_entry:
                key = self._body(computation)
                self._bodies[computation] = numbers.setdefault(key, len(numbers))

    def run(self, time: int, size: int, earliest: int) -> tuple[int, int]:
        """The first time of a run of steps that are repeated `size` steps later, and that after it.

        It goes up from `time`, and down by a few steps, not before `earliest`.
        """
        behind = time
        while behind + size < len(self._schedule.steps) and self._is_repeated(behind, size):
            behind += 1
        if behind == time:
            return time, time
        first = time
        while first > max(time - _HEADSTART, earliest) and self._is_repeated(first - 1, size):
            first -= 1
        return first, behind

    def label(self, step: Instruction) -> Hashable:
        """A key that equal steps of one computation share: all but the operands' definitions."""
        if step not in self._labels:
            shapes = tuple(operand.shape for operand in step.operands)
            self._labels[step] = step.parent, self._text(step), shapes
        return self._labels[step]

    def _text(self, instruction: Instruction) -> Hashable:
        content = self._content
        return (
            instruction.opcode,
            instruction.shape,
            content.exact_attributes(instruction),
            content.exact_payload(instruction),
            tuple([self._bodies[called] for called in instruction.called]),
        )

    def _body(self, computation: Computation) -> Hashable:
        numbers = {each: number for number, each in enumerate(computation.instructions)}
        return tuple(
            (self._text(each), tuple([numbers[operand] for operand in each.operands]))
            for each in computation.instructions
        )

    def _is_repeated(self, time: int, size: int) -> bool:
        steps = self._schedule.steps
        one, other = steps[time], steps[time + size]
        if one.opcode in _PASSED_ON:
            return other.opcode is one.opcode and other.parent is one.parent
        if self.label(one) != self.label(other):
            return False
        return all(
            self._is_same_operand(time, first, second, size)
            for first, second in zip(one.operands, other.operands, strict=True)
        )

    def _is_same_operand(
        self, time: int, first: Instruction, second: Instruction, size: int
    ) -> bool:
        """Whether two operands are one value, as far from their users, or both from outside."""
        distance = time - self._schedule.times[first]
        other = time + size - self._schedule.times[second]
        if first is second or distance == other:
            return True
        is_outside = distance > size or first.opcode in _PASSED_ON
        return is_outside and (other > size or second.opcode in _PASSED_ON)
