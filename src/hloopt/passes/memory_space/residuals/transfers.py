"""Transfers of slices between host and device, in the form that XLA:GPU gives them."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.passes.async_ops.async_pairs import (
    CONTEXT,
    AsyncPair,
    done_of,
    replace_by_pairs,
    start_of,
)


def asynchronous(slicing: Instruction) -> Instruction:
    """A fusion of a slicing alone instead of it, from an async-start to the async-done returned.

    O(operands and users).
    """
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
    done = done_of(slicing, start, Opcode.ASYNC_DONE)
    replace_by_pairs(slicing.parent, {slicing: AsyncPair(start, done)})
    return done


def _with_parameters(slicing: Instruction, name: str) -> tuple[Computation, list[Instruction]]:
    """A new computation on the same thread, with a parameter for each operand."""
    module: Module = slicing.parent.module
    computation = module.add_computation(name)
    computation.execution_thread = slicing.parent.execution_thread
    parameters = [
        computation.add(Opcode.PARAMETER, operand.shape, name=f"param_{n}", payload=str(n))
        for n, operand in enumerate(slicing.operands)
    ]
    return computation, parameters
