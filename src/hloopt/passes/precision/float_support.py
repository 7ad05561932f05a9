"""Which operations a backend can do in a low-precision type, as data.

The passes between two types ask the same questions of a backend: may this operand, may this result
be of the low type, may both types meet in one operation. `FloatSupport` has the answers as options
of a pass, `passes_through` those that no backend changes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from hloopt.diagnostics import HloError, PipelineError, did_you_mean
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.options import PassOptions, option
from hloopt.targets import NativeType, load_target


@dataclass(frozen=True, slots=True, kw_only=True)
class OpcodeRule(PassOptions):
    """The operations for which a question is answered with yes; for all others it is no."""

    opcodes: tuple[Opcode, ...] = option((), "yes for these, whatever the operand")
    operands: Mapping[Opcode, tuple[int, ...]] | None = option(
        None, "yes for these operands of an operation, by their numbers: {dot: [0]}"
    )

    def __post_init__(self) -> None:
        """Raise PipelineError for an operand with a negative number."""
        for opcode, numbers in (self.operands or {}).items():
            for number in numbers:
                if number < 0:
                    raise PipelineError(f"operand {number} of {opcode}: operands count from 0")

    def holds(self, opcode: Opcode, operand: int | None = None) -> bool:
        """The answer for one operand, or, with None, for the result or the operation."""
        if opcode in self.opcodes:
            return True
        numbers = (self.operands or {}).get(opcode)
        return numbers is not None and (operand is None or operand in numbers)


Rule: TypeAlias = bool | OpcodeRule | None

_NOTHING_NATIVE = NativeType()


@dataclass(frozen=True, slots=True, kw_only=True)
class FloatSupport(PassOptions):
    """Which operations may have operands and results of the type `low` instead of `high`.

    A rule that is given answers for every operation: what it does not list is no. One that is left
    out answers as a backend does that only moves and passes on values of type `low`. All answers
    are O(1), those of `passes_through` apart.
    """

    low: str = option("bf16", "the element type of less precision")
    high: str = option("f32", "the element type that every operation has")
    operand: Rule = option(
        None,
        "whether an operand may be of type low: true, false, or for which operations, such as "
        "{opcodes=[add],operands={dot=[0]}}",
    )
    output: Rule = option(None, "whether the result may be of type low, likewise")
    mixed: Rule = option(None, "whether both types may meet in one operation, likewise")
    operand_effectively_low: Rule = option(
        None, "whether the operation rounds an operand to low by itself, as matrix units do"
    )

    def __post_init__(self) -> None:
        """Raise PipelineError for types that are not numbers, and for one type twice."""
        for name in (self.low, self.high):
            found = ELEMENT_TYPES.get(name)
            if found is None or not (found.is_floating or found.is_integral):
                raise PipelineError(
                    f"'{name}' is not a type of numbers", help=did_you_mean(name, _NUMBERS)
                )
        if self.low == self.high:
            raise PipelineError(f"low and high are the same type, {self.low}")

    def supports_operand(self, instruction: Instruction, operand: int) -> bool:
        """Whether an operand may be of type low."""
        opcode = instruction.opcode
        if self.operand is not None:
            return _answer(self.operand, opcode, operand)
        if opcode is Opcode.CONVERT:
            return instruction.operands[0].shape.type_name == self.low
        return opcode in _MOVING or _is_associative_scan(instruction)

    def supports_output(self, instruction: Instruction) -> bool:
        """Whether the result, or an element of it, may be of type low."""
        opcode = instruction.opcode
        if self.output is not None:
            return _answer(self.output, opcode)
        if opcode is Opcode.CONVERT:
            return instruction.shape.type_name == self.low
        return opcode in _MOVING or _is_associative_scan(instruction)

    def supports_mixed(self, instruction: Instruction) -> bool:
        """Whether low and high may meet in the operands and the result."""
        opcode = instruction.opcode
        if self.mixed is not None:
            return _answer(self.mixed, opcode)
        return opcode in _MIXING or _is_associative_scan(instruction)

    def rounds_operand(self, instruction: Instruction, operand: int) -> bool:
        """Whether the operation rounds an operand of type high to low by itself."""
        rule = self.operand_effectively_low
        return rule is not None and _answer(rule, instruction.opcode, operand)

    def read_type(self, instruction: Instruction, operand: int) -> str | None:
        """The type low where the operation rounds arrays of type high in an operand to it."""
        if not self.rounds_operand(instruction, operand):
            return None
        leaves = instruction.operands[operand].shape.leaves()
        return self.low if any(leaf.type_name == self.high for leaf in leaves) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetSupport(FloatSupport):
    """The float support of a device, by the operations that it does in the type `low`.

    A rule that is given goes before what is native to the device.
    """

    native: NativeType = _NOTHING_NATIVE

    def supports_operand(self, instruction: Instruction, operand: int) -> bool:
        if self.operand is None and self._is_native(instruction):
            return True
        return FloatSupport.supports_operand(self, instruction, operand)

    def supports_output(self, instruction: Instruction) -> bool:
        if self.output is None and self._is_native(instruction):
            return True
        return FloatSupport.supports_output(self, instruction)

    def supports_mixed(self, instruction: Instruction) -> bool:
        name = instruction.opcode.value
        if self.mixed is None and name in self.native.mixing:
            return True
        if self.mixed is None and name in self.native.widening:
            operands = instruction.operands
            is_widened = instruction.shape.type_name == self.high
            if is_widened and all(each.shape.type_name == self.low for each in operands):
                return True
        return FloatSupport.supports_mixed(self, instruction)

    def _is_native(self, instruction: Instruction) -> bool:
        """O(1), but O(instructions applied) for an operation that goes by these."""
        opcode, native = instruction.opcode, self.native
        if opcode.value in native.opcodes:
            return True
        if opcode.value not in native.applied or instruction.shape.is_tuple:
            return False
        return all(
            inner.opcode.value in native.opcodes or inner.opcode in _CARRYING
            for computation in instruction.called
            for inner in computation.instructions
        )


TARGET_HELP = "hardware whose native types say what float_support leaves out"
"""The help of an option that `support_of` takes."""


def support_of(given: FloatSupport | None, target: str | None) -> FloatSupport:
    """The float support that options mean: the rules given, else those of a target, if any.

    Raises PipelineError for a bad target, and one whose native types are not known.
    """
    support = given or FloatSupport()
    if target is None:
        return support
    try:
        native = load_target(target).native_types
    except HloError as error:
        raise PipelineError(error.message, help=error.help) from error
    if native is None:
        raise PipelineError(
            f"which types are native to target '{target}' is not known",
            help="say what it can do in float_support",
        )
    return TargetSupport(
        low=support.low,
        high=support.high,
        operand=support.operand,
        output=support.output,
        mixed=support.mixed,
        operand_effectively_low=support.operand_effectively_low,
        native=native.types.get(support.low, _NOTHING_NATIVE),
    )


def passes_through(instruction: Instruction, operand: int) -> bool:
    """Whether rounding an operand is harmless where the result is rounded.

    So it is where the elements of the result are elements of the operand. O(1), but O(instructions
    of its computation) for a reduction.
    """
    opcode = instruction.opcode
    if opcode in _PASSING:
        return True
    some = _PASSING_OPERANDS.get(opcode)
    if some is not None:
        return operand in some
    if opcode is Opcode.BITCAST:
        return instruction.shape.type_name == instruction.operands[0].shape.type_name
    if opcode in (Opcode.REDUCE, Opcode.REDUCE_WINDOW):
        return all(
            passes_through(inner, number)
            for inner in instruction.called[0].instructions
            for number in range(len(inner.operands))
        )
    return False


def _answer(rule: bool | OpcodeRule, opcode: Opcode, operand: int | None = None) -> bool:
    return rule if isinstance(rule, bool) else rule.holds(opcode, operand)


def _is_associative_scan(instruction: Instruction) -> bool:
    is_scan = instruction.opcode is Opcode.SCAN
    return is_scan and instruction.attribute("is_associative") == "true"


_NUMBERS = tuple(
    name for name, kind in ELEMENT_TYPES.items() if kind.is_floating or kind.is_integral
)

_MOVING = frozenset(
    (
        *(Opcode.CALL, Opcode.CONDITIONAL, Opcode.CUSTOM_CALL, Opcode.DOMAIN),
        *(Opcode.GET_TUPLE_ELEMENT, Opcode.TUPLE, Opcode.WHILE, Opcode.OPT_BARRIER),
        *(Opcode.COUNT_LEADING_ZEROS, Opcode.SHIFT_RIGHT_ARITHMETIC, Opcode.SHIFT_RIGHT_LOGICAL),
    )
)
"""Operations whose operands and results may be low on every backend."""

_MIXING = frozenset(
    (
        *(Opcode.CALL, Opcode.CONDITIONAL, Opcode.CONVERT, Opcode.CUSTOM_CALL),
        *(Opcode.GET_TUPLE_ELEMENT, Opcode.TUPLE, Opcode.WHILE, Opcode.OPT_BARRIER),
    )
)
"""Operations in which low and high may meet on every backend."""

_CARRYING = frozenset((Opcode.PARAMETER, Opcode.CONSTANT, Opcode.CONVERT))
"""Operations of an applied computation that hold or convert values of any type."""

_PASSING = frozenset(
    (
        *(Opcode.ABS, Opcode.ALL_GATHER, Opcode.ALL_TO_ALL, Opcode.BROADCAST, Opcode.CLAMP),
        *(Opcode.COLLECTIVE_BROADCAST, Opcode.COLLECTIVE_PERMUTE, Opcode.CONCATENATE),
        *(Opcode.CONVERT, Opcode.COPY, Opcode.DOMAIN, Opcode.GET_TUPLE_ELEMENT, Opcode.MAXIMUM),
        *(Opcode.MINIMUM, Opcode.PAD, Opcode.RAGGED_ALL_TO_ALL, Opcode.RESHAPE, Opcode.REVERSE),
        *(Opcode.SLICE, Opcode.SORT, Opcode.TRANSPOSE, Opcode.TUPLE, Opcode.OPT_BARRIER),
    )
)
_PASSING_OPERANDS = {
    Opcode.DYNAMIC_SLICE: (0,),
    Opcode.GATHER: (0,),
    Opcode.DYNAMIC_UPDATE_SLICE: (0, 1),
    Opcode.SELECT: (1, 2),
}
