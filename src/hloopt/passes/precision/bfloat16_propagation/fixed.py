"""Results that never change their type."""

from __future__ import annotations

from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.ir import Instruction, Opcode
from hloopt.ir.async_chains import async_start_of
from hloopt.ir.attributes.typed import fusion_kind_of
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.opcode import ASYNC
from hloopt.ir.shapes.shape import Shape

_HOST_MEMORY = 5


def is_fixed(instruction: Instruction) -> bool:
    """Whether the type of a result must stay: something outside, or its bits, depend on it."""
    opcode = instruction.opcode
    if opcode is Opcode.CUSTOM_CALL:
        return custom_call_target(instruction) != "AllocateBuffer"
    if opcode is Opcode.BITCAST_CONVERT:
        return True
    if opcode is Opcode.BITCAST:
        return instruction.shape.type_name != instruction.operands[0].shape.type_name
    if opcode is Opcode.FUSION:
        return _is_fixed_kernel(instruction)
    if opcode in ASYNC:
        called = async_start_of(instruction).called[0]
        return called.execution_thread != instruction.parent.execution_thread
    is_spmd = instruction.parent.module.num_partitions > 1
    return has_own_side_effect(instruction, is_spmd=is_spmd)


def is_in_host_memory(shape: Shape) -> bool:
    """Whether an array lies in the memory of the host."""
    return shape.is_array and shape.layout.memory_space == _HOST_MEMORY


def _is_fixed_kernel(fusion: Instruction) -> bool:
    """Whether a custom fusion is one whose innermost root is fixed."""
    root = fusion
    while root.opcode is Opcode.FUSION and fusion_kind_of(root) == "kCustom":
        root = root.called[0].root
    return root is not fusion and root.opcode is not Opcode.FUSION and is_fixed(root)
