"""The findings about the values of two modules, without any rendering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hloopt.equivalence.comparison import Comparison
from hloopt.ir.instruction import Instruction


class ArrayError(NamedTuple):
    """The distance of two values of one instruction, on one device, at one time."""

    ulps: float
    """The largest error, in units in the last place at the largest value of the array; infinite
    where one is finite and the other is not."""
    relative: float
    """The same, as a part of the largest value."""
    type: str
    """The element type: the narrower one of two."""
    unequal: int
    """Elements that are not equal; NaN equals any NaN."""


NO_ERROR = ArrayError(0.0, 0.0, "", 0)


class FirstDifference(NamedTuple):
    """The first value of an instruction that differs."""

    when: int
    """Its number among all values that were compared, in the order of the runs."""
    device: int
    run: int
    """The how-manieth run of the instruction on the device, from 0."""


@dataclass(slots=True)
class ValueErrors:
    """The errors of one instruction, over all devices and runs of it."""

    before: Instruction
    after: Instruction
    op_name: str
    """That of the first module, as `OpNames` has it."""
    worst: ArrayError = NO_ERROR
    runs: int = 0
    """Values that were compared: one per device, and per trip of a loop."""
    differing: int = 0
    """Values that are not equal bit for bit."""
    first: FirstDifference | None = None

    def add(self, error: ArrayError, device: int, run: int, when: int) -> None:
        """Count another value in, the one with the number `when` of all."""
        self.runs += 1
        if not error.unequal:
            return
        self.differing += 1
        if self.first is None:
            self.first = FirstDifference(when, device, run)
        if error.ulps > self.worst.ulps or not self.worst.unequal:
            self.worst = error


class OperandChange(NamedTuple):
    """An operand that is another value after than before."""

    number: int
    before: str
    after: str


class Origin(NamedTuple):
    """An instruction whose error is more than the errors of its operands explain."""

    errors: ValueErrors
    device: int
    run: int
    """Its how-manieth run on the device, from 0."""
    error: ArrayError
    """At that time."""
    inputs: float
    """The largest error of its operands, as a part of their largest values."""
    operands: list[OperandChange]
    attributes: list[str]
    """The names of attributes that differ."""


class Uncounted(NamedTuple):
    """The instructions that ran and were not compared, by why."""

    only_before: list[Instruction]
    """Without a counterpart, in the order of the run."""
    only_after: list[Instruction]
    other_shapes: int
    other_runs: int
    """Instructions that ran another number of times."""


@dataclass(frozen=True, slots=True)
class Numerics:
    """The findings about two modules, on the inputs of one seed."""

    comparison: Comparison
    """Of the outputs, on all seeds."""
    inputs: str
    """The inputs that values were compared on, in words."""
    values: list[ValueErrors]
    """In the order in which the first module ran them; without those of constants."""
    origin: Origin | None
    """The first of all; None where there is none."""
    uncounted: Uncounted
