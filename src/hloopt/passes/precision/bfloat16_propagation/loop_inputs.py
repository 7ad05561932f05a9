"""Inputs of loops that nothing else reads, so that their type ties nobody."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.analysis.dataflow import slots_of
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.passes.rewriting.deep_copy import deep_copy


class _Input(NamedTuple):
    """The operand that a loop had, and all there is to restore."""

    loop: Instruction
    operand: Instruction
    text: str | None
    users: dict[Instruction, None]
    """The users of the operand, in their order."""


class _State(NamedTuple):
    """The notes of a computation or module on its text and changes."""

    holder: Computation | Module
    is_pristine: bool
    version: int

    @classmethod
    def of(cls, holder: Computation | Module) -> _State:
        return cls(holder, holder.is_pristine, holder.version)

    def restore(self) -> None:
        self.holder.is_pristine = self.is_pristine
        self.holder.version = self.version
        if isinstance(self.holder, Computation):
            self.holder.async_starts = (0, {})


class LoopInputs:
    """Gives loops inputs of their own: arrays of a type go through converts to that same type."""

    def __init__(self, module: Module, type_name: str) -> None:
        """Insert the converts. O(elements of loops' states, instructions beside loops)."""
        self._type_name = type_name
        self._states = [_State.of(module)]
        self._inputs: list[_Input] = []
        self._made: list[Instruction] = []
        loops: dict[Computation, dict[Instruction, None]] = {}
        for computation in module.computations.values():
            for caller in computation.callers:
                if caller.opcode is Opcode.WHILE:
                    loops.setdefault(caller.parent, {})[caller] = None
        for computation, inside in loops.items():
            self._states.append(_State.of(computation))
            count = len(computation)
            for loop in inside:
                self._separate(loop)
            if len(computation) > count:
                self._made += list(computation.instructions)[count:]

    def _separate(self, loop: Instruction) -> None:
        operand = loop.operands[0]
        parts = slots_of(operand.shape).parts
        slots = [slot for slot, part in enumerate(parts) if part.type_name == self._type_name]
        if slots:
            self._inputs.append(_Input(loop, operand, loop.text, dict(operand.users)))
            loop.replace_operand(0, deep_copy(operand, slots, _same_again)[0])

    def remove(self) -> None:
        """Put everything back as it was, where nothing was changed since. O(what was made)."""
        for loop, operand, text, users in reversed(self._inputs):
            loop.replace_operand(0, operand)
            operand.users = users
            loop.text = text
        for instruction in reversed(self._made):
            instruction.parent.remove(instruction)
        for state in self._states:
            state.restore()


def _same_again(value: Instruction) -> Instruction:
    return value.parent.add(Opcode.CONVERT, value.shape, [value])
