"""Compute in front of a loop what is expensive and the same in each of its trips."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order
from hloopt.ir.shapes.shape import Shape
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.control_flow.loop_invariants.hoisting import hoist_all, invariant_elements
from hloopt.passes.control_flow.loop_invariants.skipped_loops import why_not_hoisted
from hloopt.passes.control_flow.loop_invariants.widening import total_bytes


@register(
    "while-loop-expensive-invariant-code-motion",
    preserves="bits",
    xla=XlaPass(
        "WhileLoopExpensiveInvariantCodeMotion",
        "xla/service/while_loop_expensive_invariant_code_motion.h",
        compared="tests",
    ),
)
class WhileLoopExpensiveInvariantCodeMotion(ModulePass):
    """Compute chosen instructions that are the same in every trip once, in front of the loop.

    Hoisted is what `worth_hoisting_individually` names, with all it needs, where the loop does not
    have to carry more for it: the result is not larger than the elements of the state that it is
    computed of, and everything else that reads its operands is the same in every trip, too. Inner
    loops come first; computations of a changed loop become `wide.` and their old name. Linear in
    the size of the bodies.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        worth_hoisting_individually: tuple[Opcode, ...] | Callable[[Instruction], bool] = option(
            (Opcode.DOT, Opcode.CONVOLUTION), "what is hoisted: opcodes, or a function"
        )
        shape_size_function: Callable[[Shape], int] | None = option(
            None, "the bytes of a shape; none: those of its arrays, without padding"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        effects = SideEffects(module)
        return hoist_all(module, context, lambda loop: self._chosen(loop, effects, context))

    def _chosen(
        self, loop: Instruction, effects: SideEffects, context: PassContext
    ) -> list[Instruction]:
        if reason := why_not_hoisted(loop):
            context.missed(loop, reason)
            return []
        size = self.options.shape_size_function or total_bytes
        taken = {element: size(element.shape) for element in invariant_elements(loop)}
        """The bytes of the state that each invariant instruction is computed of."""
        root = loop.called[0].root
        found: list[Instruction] = []
        for instruction in post_order(loop.called[0]):
            operands = dict.fromkeys(instruction.operands)
            if instruction is root or instruction in taken or not taken.keys() >= operands.keys():
                continue
            if not _can_move(instruction) or effects.of(instruction):
                continue
            taken[instruction] = sum(taken[operand] for operand in operands)
            if self._is_wanted(instruction):
                found.append(instruction)
        chosen = []
        for instruction in found:
            if reason := _why_not(instruction, taken, root, size):
                context.missed(instruction, reason)
            else:
                chosen.append(instruction)
        return chosen

    def _is_wanted(self, instruction: Instruction) -> bool:
        wanted = self.options.worth_hoisting_individually
        return wanted(instruction) if callable(wanted) else instruction.opcode in wanted


def _can_move(instruction: Instruction) -> bool:
    return instruction.opcode is not Opcode.PARAMETER and not instruction.has_control_dependencies


def _why_not(
    instruction: Instruction,
    taken: dict[Instruction, int],
    root: Instruction,
    size: Callable[[Shape], int],
) -> str | None:
    given = size(instruction.shape)
    if given > taken[instruction]:
        return f"it has {given} bytes, and is computed of {taken[instruction]}"
    for operand in instruction.operands:
        for user in operand.users:
            if user is not root and user not in taken:
                return f"%{operand.name} has to be carried for %{user.name} all the same"
    return None
