"""The amplification of rounding by a program, and the operation that does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from hloopt.equivalence.measures import is_integral, loose_tolerance
from hloopt.equivalence.signature import place_text
from hloopt.interpreter.evaluation import Device, Observer
from hloopt.interpreter.values import Array, Value
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first

_SAMPLE = 512
"""Elements of a value that are looked at."""
_MOST = 200_000
"""Values that are kept of a run."""
_JUMP = 64
"""The number of times more than its operands a result has to be off, as a part of its size, to be
to blame alone."""

Watched = Callable[[Observer], object]
"""Runs a program with an observer."""


class Amplifier(NamedTuple):
    """The operation that makes rounding errors large."""

    instruction: Instruction
    before: float
    """The errors of its operands, as a part of their largest values."""
    after: float
    is_jump: bool
    """Whether it does that alone, and not all operations before it little by little."""

    def describe(self, module: Module) -> str:
        """A sentence: its name, its place, and its effect."""
        place = place_text(module, self.instruction)
        who = f"%{self.instruction.name}{place}"
        if not self.is_jump:
            return (
                f"It grows little by little: {who} is the first to be off by {_part(self.after)}."
            )
        if (
            not self.instruction.shape.is_tuple
            and self.after >= 1
            and _is_discrete(self.instruction)
        ):
            return f"First amplified at {who}: a decision that falls the other way."
        return (
            f"First amplified at {who}: its operands are off by {self.before:.1e} of their size, "
            f"its result by {_part(self.after)}."
        )


def _part(error: float) -> str:
    return f"{error:.1e}" if error < 1 else "all of it"


def _is_discrete(instruction: Instruction) -> bool:
    element = instruction.shape.element_type
    return element is not None and not element.is_floating


def find_amplifier(
    program: Module, leaf: Sequence[int], plain: Watched, noisy: Watched
) -> Amplifier | None:
    """The first operation on device 0 that amplifies the difference between two runs.

    Only what an output depends on is looked at. None where the values stay close together as far as
    a sample tells.
    """
    relevant = _Relevant(program, leaf)
    record = _Record(relevant)
    plain(record.keep)
    comparison = _Comparison(record.kept, relevant)
    noisy(comparison.compare)
    return comparison.jump or comparison.first_far


class _Relevant:
    """The values that one output depends on, as far as the operands in the entry tell."""

    def __init__(self, program: Module, leaf: Sequence[int]) -> None:
        self._entry = program.entry
        root = program.entry.root
        if leaf[:1] == (-1,):  # what an effect sends out
            roots = list(program.entry.instructions)
        else:
            roots = [root.operands[leaf[0]]] if leaf and root.opcode is Opcode.TUPLE else [root]
        self._instructions = set(depth_first(roots, lambda i: i.operands))
        called = dict.fromkeys(c for i in self._instructions for c in i.called)
        self._computations = set(
            depth_first(
                called, lambda c: dict.fromkeys(d for i in c.instructions for d in i.called)
            )
        )

    def __contains__(self, instruction: Instruction) -> bool:
        if instruction.parent is self._entry:
            return instruction in self._instructions
        return instruction.parent in self._computations


class _Record:
    """The values of a run, a few elements of each."""

    def __init__(self, relevant: _Relevant) -> None:
        self._relevant = relevant
        self.kept: list[tuple[Instruction, Sequence[Array]]] = []

    def keep(self, device: Device, instruction: Instruction, value: Value) -> None:
        if device.number == 0 and len(self.kept) < _MOST and instruction in self._relevant:
            self.kept.append((instruction, _sample(value)))


def _sample(value: Value) -> Sequence[Array]:
    """Some elements of an array; nothing of tuples, whose arrays are values of their own."""
    if value is None or isinstance(value, tuple):
        return ()
    flat = value.reshape(-1)
    return (np.array(flat[:: max(1, flat.size // _SAMPLE)][:_SAMPLE]),)


class _Comparison:
    """Follows a second run beside the kept values of the first."""

    def __init__(
        self, kept: Sequence[tuple[Instruction, Sequence[Array]]], relevant: _Relevant
    ) -> None:
        self._kept = kept
        self._relevant = relevant
        self._position = 0
        self._off: dict[Instruction, float] = {}
        self.jump: Amplifier | None = None
        self.first_far: Amplifier | None = None

    def compare(self, device: Device, instruction: Instruction, value: Value) -> None:
        if device.number or self.jump is not None or self._position >= len(self._kept):
            return
        if instruction not in self._relevant:
            return
        expected, before = self._kept[self._position]
        self._position += 1
        if expected is not instruction:  # another number of trips, another branch
            self._position = len(self._kept)
            caller = next(iter(expected.parent.callers), expected)
            self.jump = Amplifier(caller, 0.0, 1.0, is_jump=True)
            return
        sample = _sample(value)
        if not before or before[0].shape != sample[0].shape:
            return
        off, far = _distance(before[0], sample[0])
        self._off[instruction] = off
        if off <= far or instruction.called or instruction.opcode in _GIVEN:
            return
        inputs = max((self._off.get(operand, 0.0) for operand in instruction.operands), default=0.0)
        found = Amplifier(instruction, inputs, off, is_jump=off > _JUMP * max(inputs, _LEAST))
        if found.is_jump:
            self.jump = found
        elif self.first_far is None and off > _JUMP * far:
            self.first_far = found


_LEAST = 1e-9


def _distance(before: Array, after: Array) -> tuple[float, float]:
    """The error of an array, as a part of its largest value, and the least that is too large."""
    if is_integral(before):
        return float((before != after).any()), 0.0
    with np.errstate(all="ignore"):
        wide = np.complex128 if before.dtype.kind == "c" else np.float64
        x, y = before.astype(wide), after.astype(wide)
        distance = np.abs(x - y)
        distance = distance[np.isfinite(distance)]
        size = np.abs(x)
        largest = size[np.isfinite(size)].max(initial=0.0)
        if not distance.size or not largest:
            return 0.0, 1.0
        return float(distance.max() / largest), loose_tolerance(before.dtype) / _JUMP


def first_not_finite(program: Module, leaf: Sequence[int], run: Watched) -> Instruction | None:
    """The first operation on device 0 whose result is not finite though its operands are.

    One that the output depends on.
    """
    relevant = _Relevant(program, leaf)
    found: list[Instruction] = []
    bad: set[Instruction] = set()

    def watch(device: Device, instruction: Instruction, value: Value) -> None:
        if device.number or found or value is None or isinstance(value, tuple):
            return
        if is_integral(value) or np.isfinite(value).all():
            bad.discard(instruction)
            return
        bad.add(instruction)
        is_made = not instruction.called and instruction.opcode not in _GIVEN
        is_made = is_made and instruction in relevant
        if is_made and not any(operand in bad for operand in instruction.operands):
            found.append(instruction)

    run(watch)
    return found[0] if found else None


_GIVEN = (Opcode.PARAMETER, Opcode.CONSTANT, Opcode.GET_TUPLE_ELEMENT)
