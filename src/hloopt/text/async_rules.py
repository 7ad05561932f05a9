"""Chains of asynchronous instructions, and what XLA checks and completes when it reads them."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.async_chains import find_async_start
from hloopt.ir.attributes.opcode_attributes import allowed_attributes
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ASYNC, Opcode
from hloopt.ir.shapes.shape import Shape

THREAD = "async_execution_thread"
ALIASING = "output_to_operand_aliasing"
ATTRIBUTES_OF_BOTH = frozenset(
    ("metadata", "origin", "backend_config", "frontend_attributes", "statistics")
)
"""Attributes of an asynchronous instruction that the wrapped operation gets as well."""


def attributes_of_start(wrapped: Opcode) -> frozenset[str]:
    """Attributes of an `X-start` that belong to the start alone."""
    aliasing = {ALIASING} - allowed_attributes(wrapped).keys()
    return frozenset((THREAD, "sharding", *aliasing))


def complete_async(instruction: Instruction, calls: Sequence[Computation]) -> None:
    """Check a freshly read asynchronous instruction, and let its computation follow it.

    `calls` is what its text names; only a start keeps that. Raises HloSyntaxError.
    """
    opcode = instruction.opcode
    if opcode is not Opcode.ASYNC_DONE:
        check_context_shape(instruction.shape, opcode.value)
    if opcode is Opcode.ASYNC_START:
        start = instruction
        check_called(instruction.called)
        instruction.called[0].move_to_thread(thread_of(start))
    else:
        start = _check_chain(instruction, calls)
    _share_attributes(instruction, start.called[0].root)


def check_context_shape(shape: Shape, opcode: str) -> None:
    """Raise HloSyntaxError where a shape is not that of an asynchronous operation under way."""
    if len(shape.elements) < 2 or not shape.elements[0].is_tuple:
        raise HloSyntaxError(f"the shape of {opcode} is ((operands), result, …), not {shape.text}")


def thread_of(instruction: Instruction) -> str:
    return instruction.attributes.get(THREAD, '"main"').strip("\"'")


def check_called(called: tuple[Computation, ...]) -> None:
    """Raise HloSyntaxError unless an async-start calls one computation, and it alone does."""
    if len(called) != 1:
        raise HloSyntaxError("async-start needs one computation: calls=…")
    starts = sum(caller.opcode is Opcode.ASYNC_START for caller in called[0].callers)
    if starts > 1:
        raise HloSyntaxError(f"computation '%{called[0].name}' belongs to another async-start")


def _check_chain(instruction: Instruction, calls: Sequence[Computation]) -> Instruction:
    """The start of an update or a done."""
    opcode = instruction.opcode
    start = find_async_start(instruction)
    if start is None or instruction.operands[0].opcode is Opcode.ASYNC_DONE:
        raise HloSyntaxError(
            f"the first operand of {opcode} has to be an async-start or async-update"
        )
    if opcode is Opcode.ASYNC_DONE and len(instruction.operands) != 1:
        raise HloSyntaxError(f"async-done takes 1 operand, not {len(instruction.operands)}")
    if calls and tuple(calls) != start.called:
        raise HloSyntaxError(
            f"{opcode} calls %{calls[0].name}, its async-start calls %{start.called[0].name}"
        )
    if THREAD in instruction.attributes and thread_of(instruction) != thread_of(start):
        raise HloSyntaxError(
            f"{opcode} is of the thread '{thread_of(instruction)}', "
            f"its async-start of '{thread_of(start)}'"
        )
    return start


def _share_attributes(instruction: Instruction, operation: Instruction) -> None:
    if operation.opcode in ASYNC:
        return  # what it would get does not go on to what it wraps: printed, it would
    shared = {k: v for k, v in instruction.attributes.items() if k in ATTRIBUTES_OF_BOTH}
    if any(operation.attributes.get(k) != v for k, v in shared.items()):
        operation.attributes = {**operation.attributes, **shared}
        operation.attribute_text = operation.text = None
        operation.parent.is_pristine = False  # its text does not say so
