"""Opcodes by how the partitioner treats them."""

from __future__ import annotations

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import CONTRACTIONS, ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode

SUMMING = CONTRACTIONS | {
    *(Opcode.REDUCE, Opcode.SCATTER, Opcode.GATHER, Opcode.REDUCE_WINDOW),
    *(Opcode.SELECT_AND_SCATTER, Opcode.DYNAMIC_SLICE),
}
"""Opcodes of whose result each device may have one term of a sum."""
EXPANDED = frozenset(
    (
        *(Opcode.SORT, Opcode.GATHER, Opcode.SCATTER, Opcode.CUSTOM_CALL, Opcode.CONCATENATE),
        *(Opcode.REDUCE_WINDOW, Opcode.PAD, Opcode.SLICE, Opcode.RESHAPE, Opcode.REVERSE),
        *(Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE, Opcode.SELECT_AND_SCATTER),
        *(Opcode.FFT, Opcode.CONVOLUTION, Opcode.DOT, Opcode.CHOLESKY, Opcode.TRIANGULAR_SOLVE),
    )
)
"""Opcodes that may become several instructions, without one that has the result's shape."""
IN_PLACE = frozenset(
    (
        *ELEMENTWISE_UNARY,
        *ELEMENTWISE_BINARY,
        *(Opcode.COPY, Opcode.SELECT, Opcode.TUPLE, Opcode.CLAMP),
    )
)
"""Opcodes computed with the sharding of the result: nothing but operands is resharded."""
SUMS = frozenset((Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER, Opcode.ALL_REDUCE_START))
HEAVY = CONTRACTIONS | {Opcode.SORT, Opcode.SCATTER, Opcode.GATHER, Opcode.REDUCE}
"""Opcodes that the partitioner makes for nothing but an instruction with the same one."""


def keeps_elements(instruction: Instruction) -> bool:
    """Whether an instruction computes element by element, or reverses the order."""
    return instruction.opcode in ELEMENTWISE_UNARY or instruction.opcode in (
        Opcode.REVERSE,
        Opcode.COPY,
    )
