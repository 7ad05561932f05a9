"""Changes inside of fusions that nobody outside would see."""

from __future__ import annotations

from hloopt.ir import Instruction, Opcode
from hloopt.passes.precision.bfloat16_propagation.leaves import Leaves


def take_back_inner_changes(fusion: Instruction, leaves: Leaves) -> None:
    """Let stay high what neither comes in low nor goes out low.

    Parameters keep their decisions, and so does what a result that becomes low holds. Linear
    in the fusion, and in fusions inside that lose something.
    """
    waiting = [fusion]
    for outer in waiting:  # grows
        body = outer.called[0]
        results = {
            value
            for slot in leaves.low.get(body.root, ())
            for value in leaves.values(body.root, slot)
        }
        for instruction in leaves.flow.scope.orders[body]:
            if instruction.opcode is Opcode.PARAMETER or _holds(instruction, results, leaves):
                continue
            if instruction.opcode is Opcode.FUSION and _lose_parameters(instruction, leaves):
                waiting.append(instruction)
            if instruction in leaves.low and not any(o in leaves.low for o in instruction.operands):
                del leaves.low[instruction]


def _holds(instruction: Instruction, values: set[int], leaves: Leaves) -> bool:
    """Whether one of the leaves that may change holds one of some values."""
    return any(
        value in values
        for slot in leaves.slots[instruction.shape]
        for value in leaves.values(instruction, slot)
    )


def _lose_parameters(fusion: Instruction, leaves: Leaves) -> bool:
    """Let parameters stay high whose operand has no changes; whether there was one."""
    parameters = leaves.parameters(fusion.called[0])
    lost = [
        parameter
        for parameter, operand in zip(parameters, fusion.operands, strict=True)
        if parameter in leaves.low and operand not in leaves.low
    ]
    for parameter in lost:
        del leaves.low[parameter]
    return bool(lost)
