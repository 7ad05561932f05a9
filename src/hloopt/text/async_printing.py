"""The printing of asynchronous instructions as `X-start`, `X-update` or `X-done`.

XLA prints the short form of every wrapped computation of parameters and a root, whatever its text
then loses (the order of operands, attributes of the parts). Where the text is to be read again it
is printed only if that gives the same module back.
"""

from __future__ import annotations

from hloopt.ir.async_chains import async_followers, is_alone
from hloopt.ir.async_sugar import ASYNC_SUGAR
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.text.async_rules import ATTRIBUTES_OF_BOTH, attributes_of_start


def wrapped_operation(start: Instruction, *, readable: bool) -> Instruction | None:
    """The operation that an async-start and its followers wrap, if they have a short form.

    With `readable` only a short form that says all. O(operands of the start and of what follows).
    """
    if len(start.called) != 1:
        return None
    operation = start.called[0].root
    has_form = _says_all(start, operation) if readable else is_alone(operation)
    return operation if has_form else None


def is_printed_in_its_start(computation: Computation, *, readable: bool) -> bool:
    """Whether the short form of an async-start stands for this computation."""
    return any(
        caller.opcode is Opcode.ASYNC_START
        and wrapped_operation(caller, readable=readable) is not None
        for caller in computation.callers
    )


def _says_all(start: Instruction, operation: Instruction) -> bool:
    computation = operation.parent
    parameters = operation.operands
    opcode = operation.opcode
    return (
        f"{opcode}-start" in ASYNC_SUGAR
        and opcode not in (Opcode.PARAMETER, Opcode.CONSTANT)
        and len(computation.callers) == 1
        and len(computation) == len(parameters) + 1
        and all(
            p.opcode is Opcode.PARAMETER and p.parameter_number == number and not p.attributes
            for number, p in enumerate(parameters)
        )
        and not any(i.has_control_dependencies for i in computation.instructions)
        and _shapes_follow(start, operation)
        and _attributes_follow(start, operation)
    )


def _shapes_follow(start: Instruction, operation: Instruction) -> bool:
    """Whether operands and results of the chain give the shapes of the wrapped computation."""
    bound = [operand.shape for operand in start.operands]
    result = start.shape.elements[1]
    for user in async_followers(start):
        bound += [operand.shape for operand in user.operands[1:]]
        if user.opcode is Opcode.ASYNC_DONE:
            result = user.shape
    return result is operation.shape and bound == [p.shape for p in operation.operands]


def _attributes_follow(start: Instruction, operation: Instruction) -> bool:
    """Whether the attributes in one list are told apart again when they are read."""
    known = attributes_of_start(operation.opcode)
    shared: dict[str, str] = {}
    for instruction in (start, *async_followers(start)):
        shared |= {k: v for k, v in instruction.attributes.items() if k in ATTRIBUTES_OF_BOTH}
    return (
        shared == {k: v for k, v in operation.attributes.items() if k in ATTRIBUTES_OF_BOTH}
        and all(k in known or k in ATTRIBUTES_OF_BOTH for k in start.attributes)
        and known.isdisjoint(operation.attributes)
    )
