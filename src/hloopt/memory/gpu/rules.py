"""The operands XLA:GPU lets results be written over, beyond what that XLA allows everywhere."""

from __future__ import annotations

from hloopt.analysis.dataflow import Position, slots_of
from hloopt.analysis.nvshmem import uses_nvshmem
from hloopt.ir import Instruction, Opcode
from hloopt.memory.gpu.fusions import gpu_fusion_may_overwrite


def gpu_may_overwrite(user: Instruction, number: int, result: Position) -> bool | None:
    """Whether the result of `user` at a position may be written over operand `number`.

    Fusions have a rule of their own; all-reduce and collective-broadcast work operand by operand
    in place, unless they run on NVSHMEM. None, no opinion, of all else.
    """
    if user.opcode is Opcode.FUSION:
        return gpu_fusion_may_overwrite(user, number, result)
    if user.opcode is Opcode.ALL_REDUCE or user.opcode is Opcode.COLLECTIVE_BROADCAST:
        if uses_nvshmem(user):
            return False
        output, operand = slots_of(user.shape), user.operands[number].shape
        return (
            output.indices[result.slot] in ((), (number,)) and output.parts[result.slot] == operand
        )
    return None
