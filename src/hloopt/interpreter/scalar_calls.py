"""Computations on scalars (the sum of a reduce, the order of a sort) run on whole arrays.

Where all that a computation does is elementwise, its kernels take arrays in place of scalars, and
each of its instructions runs once for all elements. Any other one runs element by element.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from hloopt.interpreter.arithmetic.conversions import same_bits
from hloopt.interpreter.costs import ELEMENTS_PER_STEP
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.values import Array, Value, dtype_of_shape
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode

_ELEMENTWISE = (ELEMENTWISE_BINARY | ELEMENTWISE_UNARY) - {Opcode.STOCHASTIC_CONVERT} | {
    *(Opcode.CONSTANT, Opcode.SELECT, Opcode.CLAMP, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT),
    Opcode.PARAMETER,
}
_KEEPS_SCALARS = frozenset(
    (Opcode.BITCAST, Opcode.RESHAPE, Opcode.BROADCAST, Opcode.TRANSPOSE, Opcode.OPT_BARRIER)
)
"""Opcodes that give a scalar, or its bits, back as it is."""
_NESTED = frozenset((Opcode.CALL, Opcode.FUSION))


def apply_to_arrays(
    plans: Plans,
    computation: Computation,
    arguments: Sequence[Array],
    root: Instruction | None = None,
) -> Value:
    """The results of `computation` for each element of `arguments`, which broadcast together.

    A tuple of arrays where its root is a tuple. A few operations of NumPy per instruction where
    all are elementwise, else a run per element. With `root`, the values of that instruction, in
    a computation where all are elementwise.
    """
    shapes = {argument.shape for argument in arguments}
    sizes = shapes.pop() if len(shapes) == 1 else np.broadcast_shapes(*shapes)
    if plans.ask(only_elementwise, computation):
        rounds = 1 + prod(sizes) // ELEMENTS_PER_STEP
        plans.limits.spend(rounds * len(plans.of(computation).steps))
        return _spread(_run_on_arrays(plans, computation, arguments, root), sizes)
    assert root is None
    return _one_by_one(plans, computation, arguments, sizes)


def combine(
    plans: Plans,
    computation: Computation,
    accumulators: Sequence[Array],
    elements: Sequence[Array],
) -> list[Array]:
    """The next accumulators of a reducing computation, of which there may be several."""
    result = apply_to_arrays(plans, computation, [*accumulators, *elements])
    return list(result) if isinstance(result, tuple) else [result]


def only_elementwise(plans: Plans, computation: Computation) -> bool:
    """Whether a computation can run on arrays in place of scalars."""
    return all(
        instruction.shape.is_tuple or instruction.shape.is_scalar
        for instruction in computation.instructions
    ) and all(
        instruction.opcode in _ELEMENTWISE
        or _keeps_a_scalar(instruction)
        or (instruction.opcode in _NESTED and plans.ask(only_elementwise, instruction.called[0]))
        for instruction in computation.instructions
    )


def _keeps_a_scalar(instruction: Instruction) -> bool:
    operands = instruction.operands
    return (
        instruction.opcode in _KEEPS_SCALARS and len(operands) == 1 and operands[0].shape.is_scalar
    )


def _run_on_arrays(
    plans: Plans,
    computation: Computation,
    arguments: Sequence[Value],
    root: Instruction | None = None,
) -> Value:
    plan = plans.of(computation)
    values: list[Value] = [None] * len(plan.steps)
    for number, slot in enumerate(plan.parameters):
        values[slot] = arguments[number]
    for slot, step in enumerate(plan.steps):
        instruction = step.instruction
        operands = [values[operand] for operand in step.operands]
        if instruction.opcode is Opcode.PARAMETER:
            pass
        elif instruction.opcode in _KEEPS_SCALARS:
            values[slot] = _kept(instruction, operands[0])
        elif instruction.opcode in _NESTED:
            values[slot] = _run_on_arrays(plans, instruction.called[0], operands)
        else:
            assert step.kernel is not None
            values[slot] = step.kernel(instruction, *operands)
        if instruction is root:
            return values[slot]
    return values[plan.root]


def _kept(instruction: Instruction, operand: Value) -> Value:
    """A scalar as it is; a bitcast may read its bits as those of another type."""
    old, new = instruction.operands[0].shape.element_type, instruction.shape.element_type
    if old is new or old is None or new is None:
        return operand
    return same_bits(operand, old, new)


def _spread(value: Value, sizes: tuple[int, ...]) -> Value:
    """Constants give one value for all elements."""
    if isinstance(value, tuple):
        return tuple(_spread(element, sizes) for element in value)
    return value if value.shape == sizes else np.broadcast_to(value, sizes)


def _one_by_one(
    plans: Plans, computation: Computation, arguments: Sequence[Array], sizes: tuple[int, ...]
) -> Value:
    from hloopt.interpreter.evaluation import evaluate_alone

    shape = computation.root.shape
    leaves = shape.elements if shape.is_tuple else (shape,)
    results = [np.empty(sizes, dtype_of_shape(leaf)) for leaf in leaves]
    spread = [np.broadcast_to(argument, sizes) for argument in arguments]
    for index in np.ndindex(sizes):
        scalars = [np.asarray(argument[index]) for argument in spread]
        found = evaluate_alone(computation, scalars, plans)
        for result, value in zip(results, found if shape.is_tuple else (found,), strict=True):
            result[index] = value
    return tuple(results) if shape.is_tuple else results[0]
