"""`X-start`, `X-update` and `X-done`: short for async-start and its kin around an operation X.

Reading such a start builds the computation that the general form would name in `calls`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.opcode_attributes import allowed_attributes
from hloopt.ir.shape import Shape
from hloopt.text.fast_lane import link_called

if TYPE_CHECKING:
    from hloopt.text.instruction_parser import InstructionParser

_THREAD = "async_execution_thread"
_ALIASING = "output_to_operand_aliasing"
_OF_BOTH = ("metadata", "origin", "backend_config", "frontend_attributes", "statistics")


def read_async(
    parser: InstructionParser,
    instruction: Instruction,
    wrapped: Opcode,
    shape: Shape,
    references: dict[str, list[Computation]],
    opcode_start: int,
) -> None:
    """Turn a freshly read `X-start/-update/-done` into the general form."""
    cursor = parser.cursor
    if instruction.opcode is not Opcode.ASYNC_START:
        return
    if not shape.is_tuple or len(shape.elements) < 2 or not shape.elements[0].is_tuple:
        raise cursor.error(
            f"the shape of {wrapped}-start is ((operands), result, …), not {shape.text}",
            opcode_start,
        )
    attributes = dict(instruction.attributes)
    thread = attributes.get(_THREAD, '"main"').strip("\"'")
    computation = parser.module_parser.async_wrapper(thread)
    operation = Instruction()
    operation.parent = computation
    operation.name = wrapped.value
    operation.opcode = wrapped
    operation.shape = shape.elements[1]
    operation.text = None
    operation.operands = [
        _parameter(computation, number, operand.shape)
        for number, operand in enumerate(instruction.operands)
    ]
    known = allowed_attributes(wrapped)
    of_start_only = {_THREAD, *({_ALIASING} - known.keys())}
    operation.attributes = {k: v for k, v in attributes.items() if k not in of_start_only}
    link_called(operation, references)
    computation.adopt([*operation.operands, operation])
    computation.root = operation
    computation.is_pristine = True  # its text is that of the start
    names = [member.name for member in computation.instructions]
    computation.module.instruction_names.note(names, " ".join(names))
    instruction.attributes = {
        k: v for k, v in attributes.items() if k in of_start_only or k in _OF_BOTH
    }
    link_called(instruction, {"calls": [computation]})


def _parameter(computation: Computation, number: int, shape: Shape) -> Instruction:
    parameter = Instruction()
    parameter.parent = computation
    parameter.name = "async_param"
    parameter.opcode = Opcode.PARAMETER
    parameter.operands = []
    parameter.payload = str(number)
    parameter.attributes = {}
    parameter.shape = shape
    parameter.text = None
    return parameter
