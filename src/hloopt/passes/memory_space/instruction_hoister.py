"""Parameters, then constants, to the front of the schedule."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)

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

    And, where asked for, get-tuple-elements and then bitcasts right behind what they read.

    Where anything but get-tuple-elements, tuples, bitcasts, constants and parameters stands before
    a parameter, all parameters move to the front by number and lose their control dependencies;
    where it stands before a constant, all constants move before these, unless one has control
    dependencies. A get-tuple-element or bitcast with control dependencies stays, too. Bodies of
    fusions are left alone. Linear in the number of instructions.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        hoist_parameters: bool = option(True, "move parameters to the front")
        hoist_constants: bool = option(True, "move constants to the front")
        hoist_bitcasts: bool = option(False, "move bitcasts behind their operands")
        hoist_gtes: bool = option(False, "move get-tuple-elements behind their operands")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        if not module.is_scheduled:
            return False
        for computation in module.computations.values():
            if computation.is_fusion:
                continue
            for kind in self._kinds(Opcode.PARAMETER, Opcode.CONSTANT):
                moved = _to_hoist(computation, kind)
                if moved and context.apply(moved[0], f"{kind} moved to the front"):
                    _hoist(computation, moved)
                    context.count(f"{kind}s moved", len(moved))
            before_reads = order = list(computation.instructions)
            kinds = self._kinds(Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST)
            for kind in kinds:
                order = _behind_operands(order, kind)
            # Those of a second kind may go back to where the first moved them away from.
            if order != before_reads and context.apply(
                next(i for i in order if i.opcode in kinds),
                f"each {' and '.join(kinds)} moved behind what it reads",
            ):
                computation.reorder(order)
        return module.version != before

    def _kinds(self, *kinds: Opcode) -> list[Opcode]:
        """The opcodes that are moved, of these."""
        options = self.options
        is_moved = {
            Opcode.PARAMETER: options.hoist_parameters,
            Opcode.CONSTANT: options.hoist_constants,
            Opcode.GET_TUPLE_ELEMENT: options.hoist_gtes,
            Opcode.BITCAST: options.hoist_bitcasts,
        }
        return [kind for kind in kinds if is_moved[kind]]


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


def _behind_operands(schedule: list[Instruction], kind: Opcode) -> list[Instruction]:
    """A schedule with each instruction of a kind right behind its operand, chains together."""
    readers: dict[Instruction, list[Instruction]] = {}
    moved: set[Instruction] = set()
    for instruction in schedule:
        if instruction.opcode is kind and not instruction.has_control_dependencies:
            moved.add(instruction)
            readers.setdefault(instruction.operands[0], []).append(instruction)
    order: list[Instruction] = []
    for instruction in schedule:
        stack = [] if instruction in moved else [instruction]
        while stack:
            placed = stack.pop()
            order.append(placed)
            stack += reversed(readers.get(placed, ()))
    return order
