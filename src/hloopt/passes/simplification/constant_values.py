"""Computing what depends on constants alone, as `hloopt run` would."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hloopt.interpreter.errors import RunError
from hloopt.interpreter.evaluation import evaluate_instruction
from hloopt.interpreter.limits import Limits
from hloopt.interpreter.literals import is_writable, literal_text
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.values import Value, arrays_of
from hloopt.ir.instruction import Instruction

_MOST_MEMORY = 1 << 32  # bytes


class ConstantValues:
    """Values of known instructions, from the first that is needed to the last that needs it.

    `known` lists them operands first, with whether a constant is to replace them.
    """

    def __init__(
        self,
        known: dict[Instruction, bool],
        plans: Plans,
        max_steps: int,
        missed: Callable[[Instruction, str], None],
    ) -> None:
        self.known = known
        self.plans = plans
        """Of all that is folded in a module: what they know of it is asked once."""
        self.max_steps = max_steps
        self.missed = missed
        self.texts: dict[Instruction, str] = {}
        """Literals for what is to be replaced and needed by what is not, filled by `compute`."""
        self._values: dict[Instruction, Value] = {}
        self._readers: dict[Instruction, int] = {}
        """The number of instructions that are still to be computed from a value."""

    def compute(self) -> None:
        """Fill `texts`. O(work of computing + characters)."""
        for instruction in reversed(self.known):
            if self.known[instruction] or instruction in self._readers:
                for operand in dict.fromkeys(instruction.operands):
                    self._readers[operand] = self._readers.get(operand, 0) + 1
        with np.errstate(all="ignore"):
            for instruction, is_replaced in self.known.items():
                if is_replaced or instruction in self._readers:
                    self._compute(instruction)

    def _compute(self, instruction: Instruction) -> None:
        operands = dict.fromkeys(instruction.operands)
        if all(operand in self._values for operand in operands):
            self._evaluate(instruction)
        if instruction not in self._values:
            for operand in operands:
                self._write(operand)
        elif not all(self.known.get(user) for user in instruction.users) or instruction.is_root:
            self._write(instruction)
        if instruction not in self._readers:
            self._values.pop(instruction, None)
        for operand in operands:
            self._readers[operand] -= 1
            if not self._readers[operand]:
                self._values.pop(operand, None)

    def _evaluate(self, instruction: Instruction) -> None:
        operands = [self._values[operand] for operand in instruction.operands]
        self.plans.limits = Limits(self.max_steps, _MOST_MEMORY)
        try:
            value = evaluate_instruction(instruction, operands, self.plans)
        except RunError as error:
            self.missed(instruction, error.message)
            return
        if self.known[instruction] and not all(map(is_writable, arrays_of(value))):
            self.missed(instruction, "a literal has no room for complex NaNs")
            return
        self._values[instruction] = value

    def _write(self, instruction: Instruction) -> None:
        if self.known[instruction] and instruction in self._values:
            self.texts[instruction] = literal_text(self._values[instruction], instruction.shape)
