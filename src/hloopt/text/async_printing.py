"""When an asynchronous instruction is printed as `X-start`, `X-update` or `X-done`, and how.

XLA prints the short form of every wrapped computation of parameters and a root, whatever its text
then loses (the order of operands, attributes of the parts). Here it is printed only where reading
it gives the same module back.
"""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ASYNC_SUGAR, Opcode
from hloopt.text.async_rules import ASYNC_CONTINUES, ATTRIBUTES_OF_BOTH, THREAD, async_start_of
from hloopt.text.async_sugar import attributes_of_start

Attributes = list[tuple[str, str]]


def wrapped_operation(instruction: Instruction) -> Instruction | None:
    """What an asynchronous instruction runs, if the short form says all of it.

    O(operands of the start and of what follows it).
    """
    start = async_start_of(instruction)
    if start is None or len(start.called) != 1:
        return None
    operation = start.called[0].root
    return operation if _says_all(start, operation) else None


def is_printed_in_its_start(computation: Computation) -> bool:
    """Whether the short form of an async-start stands for this computation."""
    return any(
        caller.opcode is Opcode.ASYNC_START and wrapped_operation(caller) is not None
        for caller in computation.callers
    )


def merge_attributes(of_start: Attributes, of_operation: Attributes) -> Attributes:
    """The printed attributes of a start and of what it wraps, as those of the short form."""
    return [
        *[(k, v) for k, v in of_start if k == THREAD],
        *[(k, v) for k, v in of_operation if k not in ATTRIBUTES_OF_BOTH],
        *[(k, v) for k, v in of_start if k not in (THREAD, "calls")],
    ]


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
    for user in _chain(start):
        bound += [operand.shape for operand in user.operands[1:]]
        if user.opcode is Opcode.ASYNC_DONE:
            result = user.shape
    return result is operation.shape and bound == [p.shape for p in operation.operands]


def _chain(start: Instruction) -> list[Instruction]:
    """The updates and dones of a start, in the order of their text."""
    chain: list[Instruction] = []
    for user in start.users:
        if user.opcode in ASYNC_CONTINUES and user.operands[0] is start:
            chain += (user, *_chain(user))
    return chain


def _attributes_follow(start: Instruction, operation: Instruction) -> bool:
    """Whether the attributes in one list are told apart again when they are read."""
    known = attributes_of_start(operation.opcode)
    shared: dict[str, str] = {}
    for instruction in (start, *_chain(start)):
        shared |= {k: v for k, v in instruction.attributes.items() if k in ATTRIBUTES_OF_BOTH}
    return (
        shared == {k: v for k, v in operation.attributes.items() if k in ATTRIBUTES_OF_BOTH}
        and all(k in known or k in ATTRIBUTES_OF_BOTH for k in start.attributes)
        and known.isdisjoint(operation.attributes)
    )
