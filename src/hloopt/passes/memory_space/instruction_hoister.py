"""Parameters, then constants, to the front of the schedule."""

from __future__ import annotations

from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register

_STAY = (
    Opcode.GET_TUPLE_ELEMENT,
    Opcode.TUPLE,
    Opcode.CONSTANT,
    Opcode.BITCAST,
    Opcode.PARAMETER,
)
"""Opcodes that may stand before a parameter or a constant: they take no time."""


@register(
    "instruction-hoister",
    preserves="bits",
    xla=XlaPass("InstructionHoister", "xla/hlo/transforms/simplifiers/instruction_hoister.h"),
)
class InstructionHoister(ModulePass):
    """Move parameters and constants to the front of a schedule, so that live ranges are longest.

    Where anything but get-tuple-elements, tuples, bitcasts, constants and parameters stands before
    a parameter, all parameters move to the front by number and lose their control dependencies;
    where it stands before a constant, all constants move before these, unless one has control
    dependencies. Bodies of fusions are left alone. Linear in the number of instructions.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        if not module.is_scheduled:
            return False
        for computation in module.computations.values():
            if computation.is_fusion:
                continue
            for kind in (Opcode.PARAMETER, Opcode.CONSTANT):
                moved = _to_hoist(computation, kind)
                if moved and context.apply(moved[0], f"{kind} moved to the front"):
                    _hoist(computation, moved)
                    context.count(f"{kind}s moved", len(moved))
        return module.version != before


def _to_hoist(computation: Computation, kind: Opcode) -> list[Instruction]:
    """The instructions of a kind, if one of them has to move and may; else none."""
    late = behind_work = False
    for instruction in computation.instructions:
        if instruction.opcode is kind:
            late |= behind_work
        behind_work |= instruction.opcode not in _STAY
    if not late:
        return []
    if kind is Opcode.PARAMETER:
        return computation.parameters
    constants = [i for i in computation.instructions if i.opcode is kind]
    return [] if any(c.has_control_dependencies for c in constants) else constants


def _hoist(computation: Computation, moved: list[Instruction]) -> None:
    for instruction in moved:
        if instruction.opcode is Opcode.PARAMETER:
            instruction.drop_control_dependencies()
    computation.reorder([*moved, *computation.instructions])
