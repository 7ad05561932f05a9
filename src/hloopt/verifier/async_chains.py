"""Rules about asynchronous operations: each start has its done, and they agree."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.async_chains import find_async_start
from hloopt.ir.attributes.values import parse_frontend_attributes
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape_inference.operation import show
from hloopt.ir.shapes.shape import Shape, agree, tuple_shape
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken

_TUPLE = Opcode.TUPLE
CONSUMERS: dict[Opcode, tuple[Opcode, ...]] = {
    Opcode.ALL_GATHER_START: (Opcode.ALL_GATHER_DONE,),
    Opcode.ALL_REDUCE_START: (Opcode.ALL_REDUCE_DONE,),
    Opcode.COLLECTIVE_PERMUTE_START: (Opcode.COLLECTIVE_PERMUTE_DONE,),
    Opcode.COPY_START: (Opcode.COPY_DONE,),
    Opcode.ASYNC_START: (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE),
    Opcode.ASYNC_UPDATE: (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE),
    Opcode.SEND: (Opcode.SEND_DONE, _TUPLE),  # a tuple: on its way through a loop
    Opcode.RECV: (Opcode.RECV_DONE, _TUPLE),
}
"""Opcodes that may consume the result of a start."""
PRODUCERS: dict[Opcode, tuple[Opcode, ...]] = {
    Opcode.ALL_GATHER_DONE: (Opcode.ALL_GATHER_START,),
    Opcode.ALL_REDUCE_DONE: (Opcode.ALL_REDUCE_START,),
    Opcode.COLLECTIVE_PERMUTE_DONE: (Opcode.COLLECTIVE_PERMUTE_START,),
    Opcode.COPY_DONE: (Opcode.COPY_START,),
    Opcode.ASYNC_UPDATE: (Opcode.ASYNC_START, Opcode.ASYNC_UPDATE),
    Opcode.ASYNC_DONE: (Opcode.ASYNC_START, Opcode.ASYNC_UPDATE),
}
"""Opcodes that an update or a done may continue."""


def check_chains(
    computation: Computation, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """A start has one consumer, its update or done; a done continues its start.

    The send or recv that is all an asynchronous computation does has no consumer there.
    """
    users: dict[Instruction, dict[Instruction, None]] = {
        i: {} for i in found if i.opcode in CONSUMERS
    }
    if users:
        for instruction in computation.instructions:
            for operand in instruction.operands:
                if operand in users:
                    users[operand][instruction] = None
    for start, consumers in users.items():
        if start.opcode in (Opcode.SEND, Opcode.RECV) and computation.is_asynchronous:
            continue
        yield from _check_consumers(start, list(consumers))
    for instruction in found:
        expected = PRODUCERS.get(instruction.opcode)
        if expected is None:
            continue
        before = instruction.operands[0].opcode if instruction.operands else "nothing"
        if before not in expected:
            yield broken(
                instruction,
                f"The operand of a {instruction.opcode} instruction needs to be "
                f"{' or '.join(expected)}, found {before}",
            )


def _check_consumers(start: Instruction, users: list[Instruction]) -> Iterator[HloVerifyError]:
    if len(users) != 1:
        yield broken(
            start, f"The {start.opcode} instruction requires one consumer, found {len(users)}"
        )
    elif users[0].opcode not in CONSUMERS[start.opcode]:
        yield broken(
            start,
            f"The consumer of a {start.opcode} instruction needs to be one of "
            f"({', '.join(CONSUMERS[start.opcode])}), found {users[0].opcode}",
        )


def check_async(instruction: Instruction, setting: Setting) -> None:
    """The shape of an async-start, async-update or async-done, against what it wraps.

    Its element 0 holds the operands bound so far, the first parameters of the wrapped
    computation; element 1 the results, of which an earlier link may leave out the last ones.
    """
    start = find_async_start(instruction)
    if start is None:
        return  # the chain is broken, which another rule says
    wrapped = start.called[0] if start.called else None
    if wrapped is None:
        raise HloVerifyError(f"{instruction.opcode} calls no computation")
    if instruction.opcode is Opcode.ASYNC_DONE:
        _check_done(instruction, wrapped)
        return
    elements = instruction.shape.elements
    if len(elements) < 2 or not elements[0].is_tuple:
        raise HloVerifyError(
            f"The {instruction.opcode} expects a tuple of operands and results, found "
            f"{show(instruction.shape)}"
        )
    parameters = [parameter.shape for parameter in wrapped.parameters]
    if not _is_prefix(elements[0].elements, parameters):
        raise HloVerifyError(
            f"The {instruction.opcode} expects the async shape at index {{0}} to be a tuple with "
            "shapes that match the prefix of the async computation parameter shape "
            f"({show(elements[0])} vs {show(tuple_shape(parameters))})"
        )
    root = wrapped.root.shape
    if not _binds(elements[1], root):
        raise HloVerifyError(
            f"The {instruction.opcode} expects the async shape at index {{1}} to be a tuple with "
            "shapes that match the prefix of the async computation result shape "
            f"({show(elements[1])} vs {show(root)})"
        )
    if instruction.opcode is Opcode.ASYNC_START:
        _check_is_single(start, wrapped)
        _check_operands(instruction, instruction.operands, elements[0], 0)
    else:
        _check_update(instruction, elements)


def _check_is_single(start: Instruction, wrapped: Computation) -> None:
    """An asynchronous computation is one operation, a group of collectives excepted.

    Its operands may be elements of parameters. If the root is a tuple, each of its elements may be
    an operation: results are bound one by one.
    """
    around = (Opcode.PARAMETER, Opcode.GET_TUPLE_ELEMENT)
    root = wrapped.root
    results = {root, *root.operands} if root.opcode is Opcode.TUPLE else {root}
    if all(i.opcode in around or i in results for i in wrapped.instructions):
        return
    text = start.attributes.get("frontend_attributes")
    if text is None or "_collectives_group" not in parse_frontend_attributes(text):
        raise HloVerifyError(
            f"Asynchronous computation {wrapped.name} expected to contain only the root and "
            "parameter instructions"
        )


def _check_operands(
    instruction: Instruction, operands: Sequence[Instruction], bound: Shape, first: int
) -> None:
    expected = len(bound.elements) - first
    if len(operands) != expected:
        raise HloVerifyError(
            f"The {instruction.opcode} expects {expected} operands, found {len(operands)}"
        )
    for number, operand in enumerate(operands, first):
        shape = bound.elements[number]
        if not agree(operand.shape, shape):
            raise HloVerifyError(
                f"The {instruction.opcode} expects the shape of operand {number} to match the "
                f"async shape at index {{0, {number}}} ({show(operand.shape)} vs {show(shape)})"
            )


def _check_update(instruction: Instruction, elements: tuple[Shape, ...]) -> None:
    before = instruction.operands[0].shape.elements
    if len(before) < 2:
        return  # the link before has its own problem
    count = len(before[0].elements)
    new = len(elements[0].elements) - count
    if len(instruction.operands) - 1 != new:
        raise HloVerifyError(
            f"The async-update has {len(instruction.operands) - 1} new operands, but the shape "
            f"indicates {new} new bound parameters"
        )
    _check_operands(instruction, instruction.operands[1:], elements[0], count)
    if not _is_prefix(before[0].elements, elements[0].elements) or not _binds(
        before[1], elements[1]
    ):
        raise HloVerifyError(
            "The async-update expects the shape of the previous async instruction to be a prefix "
            f"of its own ({show(instruction.operands[0].shape)} vs {show(instruction.shape)})"
        )


def _check_done(done: Instruction, wrapped: Computation) -> None:
    before = done.operands[0].shape
    if len(before.elements) > 1:
        bound = len(before.elements[0].elements)
        if bound != len(wrapped.parameters):
            raise HloVerifyError(
                "The async-done expects the operands of the previous async instruction to be "
                f"fully bound: {bound} of {len(wrapped.parameters)} are"
            )
    if not agree(done.shape, wrapped.root.shape):
        raise HloVerifyError(
            "The async-done expects its shape to match the async computation result shape "
            f"({show(done.shape)} vs {show(wrapped.root.shape)})"
        )


def _is_prefix(shapes: Sequence[Shape], others: Sequence[Shape]) -> bool:
    return len(shapes) <= len(others) and all(
        agree(shape, other) for shape, other in zip(shapes, others, strict=False)
    )


def _binds(shape: Shape, result: Shape) -> bool:
    """Whether `shape` is `result`, or its first elements, or nothing yet."""
    if agree(shape, result) or (shape.is_tuple and not shape.elements):
        return True
    return shape.is_tuple and result.is_tuple and _is_prefix(shape.elements, result.elements)
