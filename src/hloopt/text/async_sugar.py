"""`X-start`, `X-update` and `X-done`: short for async-start and its kin around an operation X.

Reading such a start builds the computation that the general form would name in `calls`. The lines
after it complete that computation: an update may bring further operands, the done says what the
result is.
"""

from __future__ import annotations

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.async_chains import find_async_start
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.text.async_rules import (
    ATTRIBUTES_OF_BOTH,
    attributes_of_start,
    check_context_shape,
    thread_of,
)
from hloopt.text.fast_lane import link_called
from hloopt.text.reading import Reading
from hloopt.text.unwritten import unwritten_instruction, unwritten_parameter

_PARAMETER = "async_param"


def read_async(
    reading: Reading,
    instruction: Instruction,
    wrapped: Opcode,
    references: dict[str, list[Computation]],
) -> None:
    """Turn a freshly read `X-start/-update/-done` into the general form.

    Raises HloSyntaxError.
    """
    if instruction.opcode is Opcode.ASYNC_START:
        check_context_shape(instruction.shape, f"{wrapped}-start")
        _wrap(reading, instruction, wrapped, references)
        return
    start = find_async_start(instruction)
    if start is None:
        return  # which is an error of its own
    operation = start.called[0].root
    if operation.opcode is not wrapped:
        raise HloSyntaxError(f"the async-start runs {operation.opcode}, not {wrapped}")
    if start.called[0].is_sugar:
        _widen(operation, instruction)


def _wrap(
    reading: Reading,
    start: Instruction,
    wrapped: Opcode,
    references: dict[str, list[Computation]],
) -> None:
    attributes = dict(start.attributes)
    computation = reading.async_wrapper(thread_of(start))
    of_start_only = attributes_of_start(wrapped)
    operation = unwritten_instruction(
        computation,
        wrapped.value,
        wrapped,
        [
            unwritten_parameter(computation, _PARAMETER, number, operand.shape)
            for number, operand in enumerate(start.operands)
        ],
        {k: v for k, v in attributes.items() if k not in of_start_only},
    )
    operation.shape = start.shape.elements[1]
    link_called(operation, references)
    computation.adopt([*operation.operands, operation])
    computation.root = operation
    computation.is_pristine = True  # its text is that of the start
    _note_names(computation, list(computation.instructions))
    start.attributes = {
        k: v for k, v in attributes.items() if k in of_start_only or k in ATTRIBUTES_OF_BOTH
    }
    link_called(start, {"calls": [computation]})


def _widen(operation: Instruction, instruction: Instruction) -> None:
    """Let the wrapped operation follow what an update binds, or what a done gives."""
    computation = operation.parent
    if instruction.opcode is Opcode.ASYNC_DONE:
        operation.shape = instruction.shape
        return
    new = [
        unwritten_parameter(computation, _PARAMETER, number, operand.shape)
        for number, operand in enumerate(instruction.operands[1:], len(operation.operands))
    ]
    if new:
        operation.operands = [*operation.operands, *new]
        computation.adopt([*operation.operands, operation])
        _note_names(computation, new)


def _note_names(computation: Computation, instructions: list[Instruction]) -> None:
    for instruction in instructions:
        computation.module.instruction_names.note((instruction.name,), instruction.name)
