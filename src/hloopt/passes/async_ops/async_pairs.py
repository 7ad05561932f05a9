"""Splitting an instruction into an asynchronous start and its done."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

from hloopt.ir.clone import clone_computation
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape, tuple_shape
from hloopt.passes.rewriting.async_annotations import ANNOTATIONS, share_annotations
from hloopt.passes.rewriting.replace import replace_instruction

CONTEXT = array_shape("u32", ())
"""The context that a start hands to its done beside operands and results, where XLA has one."""


class AsyncPair(NamedTuple):
    """The start and done that an instruction becomes."""

    start: Instruction
    done: Instruction


def wrap(
    operation: Instruction,
    *,
    thread: str | None = None,
    context: tuple[Shape, ...] = (),
    on_start: Collection[str] = ANNOTATIONS,
) -> AsyncPair:
    """An async-start around a copy of `operation`, and its done, which has its annotations.

    The copy is in a computation of its own on `thread`, by default that of `operation`. On another
    thread what it calls moves with it; of what others call there is a copy then. `on_start` names
    the annotations of the start. O(operands, and what moves).
    """
    body, parameters = _with_parameters(operation, "async_computation")
    copy = body.add_clone(operation, parameters)
    body.set_root(copy)
    if thread is not None and thread != body.execution_thread:
        _move_to_thread(body, thread, operation)
    start = start_of(operation, body, context=context, on_start=on_start)
    return AsyncPair(start, done_of(operation, start, Opcode.ASYNC_DONE))


def wrap_fused(slicing: Instruction) -> AsyncPair:
    """An async-start around a fusion of a copy of `slicing` alone, and its done: the form in which
    XLA:GPU runs a slice to or from the host beside other work. O(operands)."""
    fused, body = _with_parameters(slicing, f"wrapped_{slicing.opcode}_computation")
    fused.set_root(fused.add_clone(slicing, body))
    wrapper, body = _with_parameters(slicing, "async_computation")
    named = {n: text for n, text in slicing.attributes.items() if n == "metadata"}
    wrapper.set_root(
        wrapper.add(
            Opcode.FUSION,
            slicing.shape,
            body,
            name=f"wrapped_{slicing.opcode}",
            attributes={"kind": "kLoop", **named},
            called=(fused,),
        )
    )
    start = start_of(slicing, wrapper, context=(CONTEXT,), on_start=("metadata",))
    return AsyncPair(start, done_of(slicing, start, Opcode.ASYNC_DONE))


def start_of(
    operation: Instruction,
    body: Computation,
    *,
    context: tuple[Shape, ...] = (),
    on_start: Collection[str] = ANNOTATIONS,
) -> Instruction:
    """An async-start that calls `body` with the operands of `operation`."""
    operands = tuple_shape([operand.shape for operand in operation.operands])
    attributes = {k: v for k, v in operation.attributes.items() if k in on_start}
    if body.execution_thread != "main":
        attributes["async_execution_thread"] = f'"{body.execution_thread}"'
    return operation.parent.add(
        Opcode.ASYNC_START,
        tuple_shape([operands, operation.shape, *context]),
        operation.operands,
        name=f"{operation.opcode}-start",
        attributes=attributes,
        called=(body,),
    )


def done_of(operation: Instruction, start: Instruction, opcode: Opcode) -> Instruction:
    """The instruction that gives what `operation` gives, once `start` is through."""
    return operation.parent.add(
        opcode,
        operation.shape,
        [start],
        name=f"{operation.opcode}-done",
        attributes={k: v for k, v in operation.attributes.items() if k in ANNOTATIONS},
    )


def _with_parameters(operation: Instruction, name: str) -> tuple[Computation, list[Instruction]]:
    """A new computation on the same thread, with a parameter for each operand."""
    computation = operation.parent.module.add_computation(name)
    computation.execution_thread = operation.parent.execution_thread
    parameters = [
        computation.add(Opcode.PARAMETER, operand.shape, name=f"param_{n}", payload=str(n))
        for n, operand in enumerate(operation.operands)
    ]
    return computation, parameters


def _move_to_thread(body: Computation, thread: str, operation: Instruction) -> None:
    """Let `body` and all it calls run on `thread`; `operation` will call nothing any more."""
    copies: dict[Computation, Computation] = {}

    def own(callee: Computation, user: Instruction) -> Computation:
        if callee not in copies:
            others = [c for c in callee.callers if c not in (user, operation)]
            is_shared = any(other.parent.execution_thread != thread for other in others)
            copies[callee] = clone_computation(callee)[0] if is_shared else callee
        return copies[callee]

    waiting = [body]
    for computation in waiting:  # grows
        computation.execution_thread = thread
        computation.changed()
        for instruction in list(computation.instructions):
            if instruction.called:
                called = tuple(own(callee, instruction) for callee in instruction.called)
                instruction.set_called(called)
                if instruction.opcode is Opcode.ASYNC_START:
                    continue  # it says itself on which thread it runs
                waiting += [c for c in dict.fromkeys(called) if c.execution_thread != thread]


def replace_by_pairs(computation: Computation, pairs: Mapping[Instruction, AsyncPair]) -> None:
    """Let each pair stand where its instruction stood, and remove that.

    Control predecessors move to the start, successors to the done; in a schedule both take the
    old place, side by side. O(instructions of a scheduled computation + edges).
    """
    if pairs and computation.module.is_scheduled:
        computation.splice(pairs)
    for instruction, (start, done) in pairs.items():
        for predecessor in list(instruction.control_predecessors):
            start.add_control_predecessor(predecessor)
            instruction.remove_control_predecessor(predecessor)
        replace_instruction(instruction, done)
        if start.opcode is Opcode.ASYNC_START:
            share_annotations(start)
