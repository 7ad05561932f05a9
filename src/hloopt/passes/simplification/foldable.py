"""The instructions that can be computed before the program runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import window_of
from hloopt.ir.attributes.values import parse_ints
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.ir.ordering import depth_first, post_order
from hloopt.ir.shapes.shape import Shape
from hloopt.pass_framework.base import PassContext, PassOptions, option

_APPLIES = frozenset(
    (
        *(Opcode.MAP, Opcode.REDUCE, Opcode.REDUCE_WINDOW, Opcode.SCAN, Opcode.SCATTER),
        *(Opcode.SELECT_AND_SCATTER, Opcode.SORT),
    )
)
"""Opcodes that apply computations to elements."""
_COMPUTED = frozenset(
    (
        *(ELEMENTWISE_UNARY | ELEMENTWISE_BINARY) - {Opcode.STOCHASTIC_CONVERT},
        *(Opcode.SELECT, Opcode.CLAMP, Opcode.RESHAPE, Opcode.TRANSPOSE, Opcode.BITCAST),
        *(Opcode.REVERSE, Opcode.SLICE, Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE),
        *(Opcode.CONCATENATE, Opcode.PAD, Opcode.GATHER, Opcode.DOT, Opcode.CONVOLUTION),
        *(Opcode.GET_TUPLE_ELEMENT, Opcode.CALL, Opcode.FUSION, Opcode.CONDITIONAL, *_APPLIES),
    )
)
_AS_THEY_ARE = frozenset((Opcode.CONSTANT, Opcode.IOTA, Opcode.BROADCAST, Opcode.TUPLE))
"""Opcodes that stay, though what they give may be known."""
_IN_CALLEES = _COMPUTED | _AS_THEY_ARE | {Opcode.PARAMETER, Opcode.OPT_BARRIER}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldingOptions(PassOptions):
    """Results that are too large to be computed before the program runs."""

    max_operand_elements: int = option(
        45_000_000, "leave alone what has an operand of so many elements, or more"
    )
    max_result_elements: int = option(
        1 << 20, "leave alone what would become a literal of more elements"
    )
    max_operations: int = option(
        1 << 28, "leave alone dots, convolutions and windows of more multiplications or "
        "applications of their computation"
    )  # fmt: skip
    max_steps: int = option(
        1_000_000, "give up on an instruction whose computations take more steps than this"
    )


class Foldable:
    """Decides for the instructions of one module, whose callees do not change meanwhile."""

    def __init__(self, options: FoldingOptions) -> None:
        self.options = options
        self._callees: dict[Computation, bool] = {}

    def in_computation(
        self, computation: Computation, context: PassContext
    ) -> dict[Instruction, bool]:
        """The instructions whose values are known before the program runs, operands first.

        With them, whether a constant is to replace them: not so for constants, and what stays
        although it is known. Reports what else depends on constants alone. O(edges).
        """
        known: dict[Instruction, bool] = {}
        has_constant: dict[Instruction, bool] = {}
        for instruction in post_order(computation):
            operands = instruction.operands
            if not all(operand in known for operand in operands):
                continue
            opcode = instruction.opcode
            if opcode in _AS_THEY_ARE:
                if _is_known(instruction):
                    known[instruction] = False
                    has_constant[instruction] = opcode is Opcode.CONSTANT or (
                        opcode is Opcode.TUPLE and any(has_constant[o] for o in operands)
                    )
            elif any(has_constant[o] for o in operands):
                if not (instruction.users or instruction.is_root):
                    continue
                if reason := self._why_not(instruction):
                    context.missed(instruction, reason)
                else:
                    known[instruction] = has_constant[instruction] = True
        return known

    def _why_not(self, instruction: Instruction) -> str | None:
        """The reason why an instruction with constant operands cannot be replaced, or None where it
        can."""
        opcode = instruction.opcode
        if opcode not in _COMPUTED:
            return f"{opcode} is not computed before the program runs"
        if instruction.has_control_dependencies:
            return "it has control dependencies"
        if not _is_flat_and_static(instruction.shape):
            return "its shape is dynamic, or a tuple of tuples"
        if opcode is Opcode.PAD and instruction.operands[0].opcode is Opcode.BROADCAST:
            return "a padded broadcast is smaller than its value"
        if opcode is Opcode.REDUCE_WINDOW and not instruction.operands[0].shape.dimensions:
            return "backends of XLA disagree on the initial value of a window without dimensions"
        for called in instruction.called:
            if not self._is_callee_computed(called):
                return f"%{called.name} holds what is not computed before the program runs"
        return self._why_too_large(instruction)

    def _is_callee_computed(self, computation: Computation) -> bool:
        """Whether all that a computation does, calls included, can be computed."""
        if computation not in self._callees:
            for callee in depth_first([computation], self._callees_not_seen):
                self._callees[callee] = all(
                    instruction.opcode in _IN_CALLEES
                    and not instruction.shape.is_dynamic
                    and ELIDED not in instruction.payload
                    and all(self._callees[called] for called in instruction.called)
                    for instruction in callee.instructions
                )
        return self._callees[computation]

    def _callees_not_seen(self, computation: Computation) -> Iterable[Computation]:
        called = (called for i in computation.instructions for called in i.called)
        return [callee for callee in called if callee not in self._callees]

    def _why_too_large(self, instruction: Instruction) -> str | None:
        options = self.options
        most = max((_elements(o.shape) for o in instruction.operands), default=0)
        if most >= options.max_operand_elements:
            limit = options.max_operand_elements
            return f"an operand has {counted(most, 'element')}, max_operand_elements is {limit:,}"
        result = _elements(instruction.shape)
        if result > options.max_result_elements:
            limit = options.max_result_elements
            return f"the result has {counted(result, 'element')}, max_result_elements is {limit:,}"
        times = _operations(instruction, most, result)
        if times > options.max_operations:
            return (
                f"takes {counted(times, 'operation')}, max_operations is {options.max_operations:,}"
            )
        if instruction.opcode in _APPLIES:
            steps = times * max(len(c) - len(c.parameters) for c in instruction.called)
            if steps > times and steps > options.max_steps:
                return f"takes {counted(steps, 'step')}, max_steps is {options.max_steps:,}"
        return None


def _is_known(instruction: Instruction) -> bool:
    """Whether a constant, iota, broadcast or tuple of known operands has a known value."""
    if instruction.opcode is Opcode.TUPLE:
        return True
    if not _is_flat_and_static(instruction.shape):
        return False
    if instruction.opcode is Opcode.BROADCAST:
        return instruction.operands[0].opcode not in (Opcode.BROADCAST, Opcode.IOTA)
    return ELIDED not in instruction.payload


def _is_flat_and_static(shape: Shape) -> bool:
    return all(part.is_array and not part.is_dynamic for part in shape.elements or (shape,))


@lru_cache(1024)
def _elements(shape: Shape) -> int:
    return sum(leaf.element_count() for leaf in shape.leaves())


def _operations(instruction: Instruction, operand: int, result: int) -> int:
    """About how many operations on elements it takes, of instructions that take many.

    `operand` and `result` are elements of the largest operand and of the result.
    """
    match instruction.opcode:
        case Opcode.DOT:
            contracted = parse_ints(instruction.attributes.get("lhs_contracting_dims", "{}"))
            return result * prod(instruction.operands[0].shape.dimensions[d] for d in contracted)
        case Opcode.CONVOLUTION:
            return result * instruction.operands[1].shape.element_count()
        case Opcode.REDUCE_WINDOW | Opcode.SELECT_AND_SCATTER:
            window = window_of(instruction)
            return max(operand, result) * prod(d.size for d in window.dimensions)
        case opcode if opcode in _APPLIES:
            return max(operand, result)
    return 0
