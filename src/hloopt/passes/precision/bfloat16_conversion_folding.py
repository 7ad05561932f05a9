"""Let operations take and give the low type themselves in place of converts around them."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.in_place import InPlace
from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ASYNC, Opcode
from hloopt.ir.ordering import post_order
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.ir.tuples import is_only_taken_apart
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.precision.float_support import TARGET_HELP, FloatSupport, support_of
from hloopt.verifier.instruction_rules import KEEPS_PRECISION

_LEFT_ALONE = frozenset(
    (
        *(Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.CONSTANT, Opcode.PARAMETER),
        *(Opcode.FUSION, Opcode.BITCAST, Opcode.BITCAST_CONVERT, Opcode.CONVERT, Opcode.CALL),
        *(Opcode.CUSTOM_CALL, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.OPT_BARRIER, *ASYNC),
    )
)
"""Opcodes that move values, run computations or convert themselves."""


@dataclass(frozen=True, slots=True)
class _Folds:
    """Converts around an instruction."""

    operands: list[int]
    """The operands that are converted from low to high."""
    result: bool
    """Whether all readers convert the result to low."""
    elements: list[int]
    """The elements of its result, a tuple, that all readers convert to low."""

    def __bool__(self) -> bool:
        return bool(self.operands or self.result or self.elements)

    def __str__(self) -> str:
        parts = [f"the convert of operand {number}" for number in self.operands]
        parts += ["converts of the result"] * self.result
        parts += [f"converts of element {index}" for index in self.elements]
        return ", ".join(parts)


@register(
    "bfloat16-conversion-folding",
    preserves="precision",
    xla=XlaPass(
        "BFloat16ConversionFolding",
        "xla/service/bfloat16_conversion_folding.h",
        compared="tests",
    ),
)
class Bfloat16ConversionFolding(ModulePass):
    """Fold converts from and to a low precision into the operations between them.

    An operation that can take operands of the low type reads what converts to the high type made
    them of, and one that can give the low type does so where all its readers convert to it. Where
    both types must not meet in it, it is all or nothing. Elements of an all-reduce of several
    arrays are looked at one by one. The converts stay, with nothing to read them: `dce` removes
    them. Fusions, calls, loops, custom calls, what works in place and what has side effects are
    left alone. Linear in the size of the module.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        float_support: FloatSupport | None = option(
            None, "which operations may have the low type; null: bf16, only moved and passed on"
        )
        target: str | None = option(None, TARGET_HELP)

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        support = support_of(self.options.float_support, self.options.target)
        folding = _Folding(support, is_spmd=module.num_partitions > 1)
        changed = False
        for computation in list(module.computations.values()):
            if computation.is_fusion:
                continue
            for instruction in post_order(computation):
                if instruction.opcode in _LEFT_ALONE:
                    continue
                beside = folding.converts_beside(instruction)
                if not beside:
                    continue
                folds = folding.possible(instruction, beside)
                if reason := folding.why_not(instruction, folds):
                    context.missed(instruction, f"converts beside it stay: {reason}")
                    continue
                if not context.apply(instruction, f"folded into it: {folds}"):
                    return changed
                folding.fold(instruction, folds)
                context.count("operations changed")
                changed = True
        return changed


class _Folding:
    def __init__(self, support: FloatSupport, *, is_spmd: bool) -> None:
        self.support = support
        self.is_spmd = is_spmd
        self._in_place = InPlace()

    # -- decisions --------------------------------------------------------------------------------

    def converts_beside(self, instruction: Instruction) -> _Folds:
        """The converts around an instruction, whatever it can do without them. O(users)."""
        numbers = range(len(instruction.operands))
        return _Folds(
            operands=[n for n in numbers if self._is_widened(instruction.operands[n])],
            result=not instruction.is_root and self._is_narrowed([instruction]),
            elements=self._narrowed_elements(instruction),
        )

    def possible(self, instruction: Instruction, beside: _Folds) -> _Folds:
        """Those of the converts that the instruction can do without."""
        support = self.support
        return _Folds(
            operands=[n for n in beside.operands if support.supports_operand(instruction, n)],
            result=beside.result and support.supports_output(instruction),
            elements=beside.elements if self._can_mix(instruction) else [],
        )

    def why_not(self, instruction: Instruction, folds: _Folds) -> str | None:
        """The reason why an instruction stays as it is, or None."""
        low, high = self.support.low, self.support.high
        if has_own_side_effect(instruction, is_spmd=self.is_spmd):
            return "it has a side effect"
        if self._in_place.pairs(instruction):
            return "it is written over an operand"
        if not folds:
            return f"it has neither operands nor results of type {low}"
        if self._can_mix(instruction):
            return None
        if instruction.is_root:
            return f"it is the root, and {low} and {high} must not meet in it"
        others = [
            operand
            for number, operand in enumerate(instruction.operands)
            if operand.shape.type_name == high and number not in folds.operands
        ]
        if others or (instruction.shape.type_name == high and not folds.result):
            rest = f"%{others[0].name}" if others else "its result"
            return f"{rest} stays {high}, and {low} must not meet it there"
        return None

    def _can_mix(self, instruction: Instruction) -> bool:
        return instruction.opcode not in KEEPS_PRECISION and self.support.supports_mixed(
            instruction
        )

    def _is_widened(self, operand: Instruction) -> bool:
        if operand.opcode is not Opcode.CONVERT or operand.shape.type_name != self.support.high:
            return False
        return operand.operands[0].shape is operand.shape.with_element_type(self.support.low)

    def _is_narrowed(self, values: list[Instruction]) -> bool:
        """Whether values have readers, each of them some, and all are converts to low."""
        return all(
            value.shape.type_name == self.support.high
            and value.users
            and not value.is_root
            and all(
                user.opcode is Opcode.CONVERT
                and user.shape is value.shape.with_element_type(self.support.low)
                for user in value.users
            )
            for value in values
        )

    def _narrowed_elements(self, instruction: Instruction) -> list[int]:
        """The elements of an all-reduce of several arrays that all readers convert to low."""
        if instruction.opcode is not Opcode.ALL_REDUCE or not instruction.shape.is_tuple:
            return []
        if not is_only_taken_apart(instruction):
            return []
        readers: dict[int, list[Instruction]] = {}
        for user in instruction.users:
            readers.setdefault(user.tuple_index, []).append(user)
        return sorted(index for index, values in readers.items() if self._is_narrowed(values))

    # -- edits ------------------------------------------------------------------------------------

    def fold(self, instruction: Instruction, folds: _Folds) -> None:
        """Let the instruction do without these converts. O(operands + users of users)."""
        if folds.result:
            self._narrow(instruction)
        if folds.elements:
            elements = list(instruction.shape.elements)
            for index in folds.elements:
                elements[index] = elements[index].with_element_type(self.support.low)
            instruction.set_shape(tuple_shape(elements))
            for reader in [u for u in instruction.users if u.tuple_index in folds.elements]:
                self._narrow(reader)
        for number in folds.operands:
            instruction.replace_operand(number, instruction.operands[number].operands[0])

    def _narrow(self, value: Instruction) -> None:
        """Give a value type low, and its readers' readers the value itself."""
        value.set_shape(value.shape.with_element_type(self.support.low))
        for convert in list(value.users):
            convert.replace_all_uses_with(value)
