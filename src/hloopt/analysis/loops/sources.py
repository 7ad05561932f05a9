"""The origin of values: through tuples, copies, fusions, calls, and loops that keep them."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.loop_state import is_handed_on, only_copies
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape

_MOST_STEPS = 256
"""Values handed on more often are not followed further, so that many loops stay linear."""


class Source(NamedTuple):
    """A part of what an instruction gives: `path` leads to it through tuples, its last step first.

    Without a path it is the whole value.
    """

    instruction: Instruction
    path: tuple[int, ...] = ()

    @property
    def shape(self) -> Shape:
        """The shape of this part. O(steps of the path)."""
        shape = self.instruction.shape
        for index in reversed(self.path):
            shape = shape.elements[index]
        return shape

    def element_of(self, loop: Instruction) -> int | None:
        """The element of the loop's state that this is, as body or condition take it."""
        taker = self.instruction
        is_state = taker.opcode is Opcode.PARAMETER and taker.parent in loop.called
        return self.path[0] if is_state and len(self.path) == 1 else None


def source_of(value: Instruction) -> Source:
    """The instruction that makes a value, which others only hand on.

    A loop hands on the elements of its state that no trip changes. A computation hands on its
    parameters where it is called from one place. O(instructions passed), which are 256 at most: an
    instruction that hands on what more of them handed on counts as the one that makes it.
    """
    path: list[int] = []
    for _ in range(_MOST_STEPS):
        opcode = value.opcode
        if opcode is Opcode.GET_TUPLE_ELEMENT:
            path.append(value.tuple_index)
            value = value.operands[0]
        elif opcode is Opcode.TUPLE and path:
            value = value.operands[path.pop()]
        elif opcode is Opcode.OPT_BARRIER or only_copies(value):
            value = value.operands[0]
        elif opcode in (Opcode.FUSION, Opcode.CALL):
            value = value.called[0].root
        else:
            loop = value if opcode is Opcode.WHILE else _only_caller(value)
            if loop is not None and loop.opcode in (Opcode.FUSION, Opcode.CALL):
                value = loop.operands[value.parameter_number]
            elif loop is not None and path and is_handed_on(loop, path[-1]):
                value = loop.operands[0]
            else:
                break
    return Source(value, tuple(path))


def _only_caller(value: Instruction) -> Instruction | None:
    """The one instruction that gives a parameter its value."""
    if value.opcode is not Opcode.PARAMETER:
        return None
    return only_caller(value.parent)


def only_caller(computation: Computation) -> Instruction | None:
    """The instruction that calls a computation, if it is the only one. O(1)."""
    callers = computation.callers
    return next(iter(callers)) if len(callers) == 1 else None
