"""Evaluating what an instruction computes from constants and a few given values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from hloopt.analysis.loops.integers import Integers, computed, has_integers, is_integer
from hloopt.analysis.loops.sources import Source, source_of
from hloopt.diagnostics import HloError
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode

if TYPE_CHECKING:
    from hloopt.interpreter.values import Value

_MOST_STEPS = 64
_MOST_ELEMENTS = 64
"""Counters of loops are made in few steps from small arrays; anything larger is not followed."""
_COMPUTED = (ELEMENTWISE_BINARY | ELEMENTWISE_UNARY) - {Opcode.STOCHASTIC_CONVERT} | {
    *(Opcode.CONSTANT, Opcode.SELECT, Opcode.CLAMP, Opcode.RESHAPE, Opcode.BROADCAST),
    *(Opcode.IOTA, Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.REVERSE, Opcode.TRANSPOSE),
    *(Opcode.CONCATENATE, Opcode.BITCAST, Opcode.BITCAST_CONVERT),
}


_Steps: TypeAlias = dict[Source, list[Source]]
"""The steps of a computation in order, each with its operands."""


class Expression:
    """An expression: the steps that compute a value, in the order they run in.

    Made by `of`, in O(steps). What can be is computed in Python's integers; the rest takes the
    kernels of the interpreter, and NumPy.
    """

    def __init__(self, inputs: Sequence[Source], steps: _Steps, result: Source) -> None:
        self._inputs = inputs
        self._steps = steps
        self._result = result
        self._constants: dict[Source, Integers] = {}
        self._kernels: list[Any] = []

    @classmethod
    def of(
        cls,
        value: Instruction,
        inputs: Sequence[Source] = (),
        *,
        most_elements: int = _MOST_ELEMENTS,
    ) -> Expression | None:
        """The expression that computes `value` from `inputs` and constants.

        None where that takes anything else, arrays of more than `most_elements`, or many steps.
        """
        result = source_of(value)
        steps: _Steps = {}
        stack = [result]
        while stack:
            source = stack[-1]
            if source in steps or source in inputs:
                stack.pop()
                continue
            if len(stack) + len(steps) > _MOST_STEPS or not _is_computed(source, most_elements):
                return None
            operands = [source_of(operand) for operand in source.instruction.operands]
            pending = [o for o in operands if o not in steps and o not in inputs]
            if not pending:
                steps[source] = operands
                stack.pop()
            stack += pending
        return cls(inputs, steps, result)

    @property
    def key(self) -> Hashable:
        """Equal for expressions that compute the same of their inputs in the same steps.

        O(steps + length of literals).
        """
        numbers = {source: n for n, source in enumerate((*self._inputs, *self._steps))}
        steps = [
            (
                *(step.instruction.opcode, step.instruction.shape, step.instruction.payload),
                tuple((n, v) for n, v in step.instruction.attributes.items() if n != "metadata"),
                tuple(numbers[source] for source in read),
            )
            for step, read in self._steps.items()
        ]
        return len(self._inputs), tuple(steps), numbers[self._result]

    def evaluate(self, *given: Value) -> Value:
        """The value, from values of the inputs. None where the interpreter has none.

        Scalar integers and truth values are a Python `int`, here and among the inputs.
        """
        values = self._in_integers(given)
        if values is not None and self._result.shape.is_scalar:
            return values[self._result][0]
        return self._interpreted(given)

    def _in_integers(self, given: Sequence[Value]) -> dict[Source, Integers] | None:
        """The values of all steps, as far as these are integers and known without NumPy."""
        if not all(isinstance(value, int) for value in given):
            return None
        values = dict(self._constants)
        values.update((s, (value,)) for s, value in zip(self._inputs, given, strict=True))
        for step, read in self._steps.items():
            if step not in values:
                value = computed(step.instruction, [values[source] for source in read])
                if value is None:
                    return None
                values[step] = value
                if not read:
                    self._constants[step] = value
        return values

    def _interpreted(self, given: Sequence[Value]) -> Value:
        from hloopt.ir.literals.literal import ELIDED

        if any(ELIDED in step.instruction.payload for step in self._steps):
            return None  # before NumPy is imported: dumps leave large tables out

        import numpy as np

        from hloopt.interpreter.evaluation import guarded
        from hloopt.interpreter.plan import Plans
        from hloopt.interpreter.values import dtype_of_shape

        if not self._kernels:
            plans = Plans()
            self._kernels = [plans.kernel_of(step.instruction) for step in self._steps]
        values = {
            source: np.asarray(value, dtype_of_shape(source.shape))
            for source, value in zip(self._inputs, given, strict=True)
        }
        try:
            with np.errstate(all="ignore"):
                for (step, read), kernel in zip(self._steps.items(), self._kernels, strict=True):
                    operands = [values[source] for source in read]
                    values[step] = guarded(step.instruction, kernel, step.instruction, *operands)
        except HloError:
            return None
        shape, result = self._result.shape, values[self._result]
        return int(result) if shape.is_scalar and has_integers(shape) else result


def _is_computed(source: Source, most_elements: int) -> bool:
    instruction = source.instruction
    shape = instruction.shape
    return (
        not source.path
        and instruction.opcode in _COMPUTED
        and shape.is_array
        and not shape.is_dynamic
        and shape.element_count() <= most_elements
    )


def constant_value(value: Instruction) -> int | None:
    """The value of a scalar integer that is constant: written as such, or computed from constants.

    O(instructions it is computed from).
    """
    expression = Expression.of(value) if is_integer(value) else None
    result: int | None = None if expression is None else expression.evaluate()
    return result
