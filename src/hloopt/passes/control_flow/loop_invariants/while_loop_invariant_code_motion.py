"""Compute in front of a loop what is the same in each of its trips."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import STARTS, Opcode
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
from hloopt.passes.control_flow.loop_invariants.skipped_loops import TRANSFERS, why_not_hoisted
from hloopt.passes.control_flow.loop_invariants.widening import total_bytes
from hloopt.passes.simplification.dce import DeadCodeElimination
from hloopt.passes.simplification.tuple_simplifier import TupleSimplifier

_CHEAP = frozenset(
    (
        *(Opcode.BITCAST, Opcode.BROADCAST, Opcode.IOTA, Opcode.REVERSE, Opcode.SLICE),
        *(Opcode.TRANSPOSE, Opcode.TUPLE),
    )
)
"""Opcodes that are hoisted only for what needs them."""
_BOUND = STARTS | {Opcode.PARAMETER, Opcode.AFTER_ALL}
"""Opcodes that stay: only its done may read a start, and no element of the state."""


@register(
    "while-loop-invariant-code-motion",
    preserves="bits",
    xla=XlaPass("WhileLoopInvariantCodeMotion", "xla/service/while_loop_invariant_code_motion.h"),
)
class WhileLoopInvariantCodeMotion(ModulePass):
    """Compute what every trip of a while loop computes alike once, in front of the loop.

    Inner loops come first. Hoisted is what depends only on constants and on elements of the state
    that every trip hands on, without side effects and control dependencies; what costs nothing
    (bitcasts, broadcasts, iotas, slices, transposes, constants, …) only where something hoisted
    needs it. The loop carries what was hoisted in further elements of its state: its computations
    become `wide.` and their old name. Loops of at most one trip stay, and those whose body has
    what is bound to it. Afterwards dead code and tuples are cleaned up. Linear in the size of the
    bodies.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        hoist_constants: bool = option(False, "hoist constants for themselves")
        hoist_reshapes: bool = option(False, "hoist reshapes for themselves")
        hoist_other: bool = option(True, "hoist other instructions than constants and reshapes")
        hoist_size_inflation_ratio: float | None = option(
            None, "leave what is larger than this times its operands; none: however large"
        )
        shape_size_function: Callable[[Shape], int] | None = option(
            None, "the bytes of a shape; none: those of its arrays, without padding"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        effects = SideEffects(module)
        if not hoist_all(module, context, lambda loop: self._chosen(loop, effects, context)):
            return False
        for cleaner in (TupleSimplifier(), DeadCodeElimination()):
            cleaner.run(module, context.as_part())
        return True

    def why_not(self, loop: Instruction) -> str | None:
        """The reason why nothing is hoisted out of a loop, whatever its body computes."""
        reason = why_not_hoisted(loop, TRANSFERS)
        if reason is None and not self.options.hoist_constants:
            elements = invariant_elements(loop)
            if not any(element.shape.is_array for element in elements):
                return "no array of its state is handed on by every trip"
        return reason

    def _chosen(
        self, loop: Instruction, effects: SideEffects, context: PassContext
    ) -> list[Instruction]:
        """The instructions of a loop's body to be hoisted for themselves, operands first."""
        if reason := self.why_not(loop):
            context.missed(loop, reason)
            return []
        known = dict.fromkeys(invariant_elements(loop))
        root = loop.called[0].root
        chosen: list[Instruction] = []
        for instruction in post_order(loop.called[0]):
            if instruction in known or not all(o in known for o in instruction.operands):
                continue
            if instruction.opcode in _BOUND or instruction.has_control_dependencies:
                continue
            if effects.of(instruction) or not self._is_allowed(instruction):
                continue
            if self._inflates(instruction):
                context.missed(instruction, "it is larger than hoist_size_inflation_ratio allows")
                continue
            known[instruction] = None
            if instruction is not root and self._is_worth_it(instruction):
                chosen.append(instruction)
        return chosen

    def _is_allowed(self, instruction: Instruction) -> bool:
        cheap = (Opcode.CONSTANT, Opcode.RESHAPE)
        return self.options.hoist_other or instruction.opcode in cheap

    def _inflates(self, instruction: Instruction) -> bool:
        ratio = self.options.hoist_size_inflation_ratio
        if ratio is None or instruction.opcode is Opcode.CONSTANT:
            return False
        size = self.options.shape_size_function or total_bytes
        taken = sum(size(operand.shape) for operand in instruction.operands)
        return size(instruction.shape) > ratio * taken

    def _is_worth_it(self, instruction: Instruction) -> bool:
        opcode = instruction.opcode
        if opcode is Opcode.CONSTANT:
            return self.options.hoist_constants
        if opcode is Opcode.RESHAPE:
            return self.options.hoist_reshapes
        if opcode is Opcode.CUSTOM_CALL:
            return custom_call_target(instruction) != "Sharding"
        return opcode not in _CHEAP
