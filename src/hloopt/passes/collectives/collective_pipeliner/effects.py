"""Side effects: instructions that must run as often as the program says."""

from __future__ import annotations

from collections.abc import Collection

from hloopt.analysis.async_operations import SYNC_COLLECTIVES
from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode


def has_effect(value: Instruction, *, but: Collection[Opcode] = SYNC_COLLECTIVES) -> bool:
    """Whether running an instruction once more, or once less, can be seen from outside.

    What it calls included. Opcodes in `but` only compute: by default collectives in one piece, as
    all devices run them alike. O(what it calls).
    """
    waiting, seen = [value], set[Computation]()
    while waiting:
        instruction = waiting.pop()
        if has_own_side_effect(instruction) and instruction.opcode not in but:
            return True
        called = set(instruction.called) - seen
        seen |= called
        waiting += (i for computation in called for i in computation.instructions)
    return False
