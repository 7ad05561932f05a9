"""Indices of slices, computed outside of the fusions that they stand in."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.rewriting.replace import OF_THE_VALUE

_MOST_STEPS = 64


def index_steps(index: Instruction) -> list[Instruction] | None:
    """The instructions of a fusion that compute an index from its parameters, operands first.

    None where they are many, or not all of scalars. O(steps).
    """
    steps: dict[Instruction, None] = {}
    stack = [index]
    while stack:
        step = stack[-1]
        pending = [o for o in step.operands if o not in steps]
        if len(steps) + len(stack) > _MOST_STEPS or not step.shape.is_scalar or step.called:
            return None
        if step in steps or not pending:
            steps[step] = None
            stack.pop()
        stack += pending
    return list(steps)


@dataclass(slots=True)
class Indices:
    """The indices that were computed outside so far."""

    _made: dict[Hashable, Instruction] = field(default_factory=dict)

    def outside(self, index: Instruction, fusion: Instruction) -> Instruction:
        """An index of a fusion, computed beside it: one instruction for equal computations.

        A computation becomes a fusion of its own. O(steps).
        """
        if index.opcode is Opcode.PARAMETER:
            return fusion.operands[index.parameter_number]
        steps = index_steps(index)
        assert steps is not None
        numbers = {step: number for number, step in enumerate(steps)}
        key = (
            fusion.parent,
            *(_key(step, numbers, fusion) for step in steps),
        )
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = _computed(steps, fusion)
        return found

    def constant(self, value: int, like: Instruction, parent: Computation) -> Instruction:
        """A constant of the type of another index; one in each computation."""
        key = (parent, value, like.shape)
        found = self._made.get(key)
        if found is None:
            found = parent.add(Opcode.CONSTANT, like.shape, payload=str(value))
            self._made[key] = found
        return found


def _key(step: Instruction, numbers: dict[Instruction, int], fusion: Instruction) -> Hashable:
    if step.opcode is Opcode.PARAMETER:
        return fusion.operands[step.parameter_number]
    said = {n: text for n, text in step.attributes.items() if n not in ("metadata", *OF_THE_VALUE)}
    operands = tuple(numbers[operand] for operand in step.operands)
    return step.opcode, step.shape, step.payload, tuple(said.items()), operands


def _computed(steps: list[Instruction], fusion: Instruction) -> Instruction:
    """The result of steps of a fusion, computed beside it."""
    index = steps[-1]
    parent = fusion.parent
    if index.opcode is Opcode.CONSTANT:
        return parent.add_clone(index, [])
    body = parent.module.add_computation(f"fused_{index.opcode}")
    copies: dict[Instruction, Instruction] = {}
    operands: list[Instruction] = []
    for step in steps:
        if step.opcode is Opcode.PARAMETER:
            number = str(len(operands))
            operands.append(fusion.operands[step.parameter_number])
            copies[step] = body.add(
                Opcode.PARAMETER, step.shape, name=f"param_{number}", payload=number
            )
        else:
            copies[step] = body.add_clone(step, [copies[operand] for operand in step.operands])
    body.set_root(copies[index])
    return parent.add(
        Opcode.FUSION,
        index.shape,
        operands,
        name=f"loop_{index.opcode}_fusion",
        attributes={"kind": "kLoop"},
        called=(body,),
    )
