"""How one instruction comes to work in types that the backend can do: the plan, and its edits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.ir.clone import clone_to_change
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.element_type import ELEMENT_TYPES
from hloopt.ir.shapes.shape import Shape
from hloopt.passes.precision.float_support import FloatSupport, passes_through
from hloopt.passes.precision.type_changes import converted, leaf_types, with_type

UNTOUCHED = frozenset(
    (
        *(Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT, Opcode.CONSTANT, Opcode.DOMAIN),
        *(Opcode.PARAMETER, Opcode.FUSION, Opcode.CONVERT, Opcode.CALL, Opcode.CUSTOM_CALL),
        *(Opcode.WHILE, Opcode.CONDITIONAL, Opcode.BITCAST, Opcode.BITCAST_CONVERT),
        *(Opcode.ASYNC_START, Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE),
        *(Opcode.COPY_START, Opcode.COPY_DONE),
    )
)
"""Operations that hold, move or pass on values of any type, or say themselves what they convert."""

KEEP_COMPUTATIONS = frozenset((Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.REDUCE_SCATTER))
"""Operations whose computation only names a reduction, whatever its types are."""

_BY_ELEMENTS = frozenset((Opcode.SORT, Opcode.ALL_REDUCE, Opcode.REDUCE_SCATTER))
"""Operations that give, for several operands, one element of a tuple each."""

_OF_ALL_BITS = frozenset(
    (Opcode.COUNT_LEADING_ZEROS, Opcode.MULHI, Opcode.POPCNT, Opcode.SHIFT_RIGHT_LOGICAL)
)
"""Operations on integers whose low bits depend on high bits, those of a sign among them."""


class Plan(NamedTuple):
    """The conversions around one instruction."""

    raised: Sequence[int]
    """The operands whose parts of type low become high."""
    raises_result: bool = False
    """Whether the result's parts of type low become high, and are converted back after it."""
    lowered: Sequence[int] = ()
    """The operands whose parts of type high become low."""
    computations: Sequence[Computation] = ()
    """The applied computations that need a copy with parameters and a root of type high."""

    @property
    def is_empty(self) -> bool:
        return not any(self)


_NOTHING = Plan(())


class Normalizer:
    """Plans and makes the conversions around instructions of one module."""

    def __init__(self, module: Module, support: FloatSupport, *, excess_precision: bool) -> None:
        self.support = support
        self.excess_precision = excess_precision
        self.is_spmd = module.num_partitions > 1
        self.low, self.high = support.low, support.high
        self._types: dict[Shape, frozenset[str]] = {}
        self._ends: dict[Computation, frozenset[str]] = {}

    def has_low(self, instruction: Instruction) -> bool:
        """Whether a part of the result is of type low. O(1) per shape met before."""
        return self.low in leaf_types(instruction.shape, self._types)

    def has_high(self, instruction: Instruction) -> bool:
        """Whether a part of the result is of type high."""
        return self.high in leaf_types(instruction.shape, self._types)

    def why_not(self, instruction: Instruction) -> str | None:
        """The reason why an instruction is left alone although it may need conversions."""
        if has_own_side_effect(instruction, is_spmd=self.is_spmd):
            return "it has a side effect"
        if instruction.opcode in _OF_ALL_BITS and ELEMENT_TYPES[self.low].is_integral:
            return f"it would see other bits in {self.high}"
        if instruction.opcode is Opcode.STOCHASTIC_CONVERT:
            return "it takes random numbers with as many bits as its type has"
        if any(map(self._is_complex, (instruction, *instruction.operands))):
            return f"the parts of its complex numbers are of type {self.low}"
        if instruction.parent.is_asynchronous:
            return "an async-start runs it, and cannot run converts beside it"
        return None

    def _is_complex(self, instruction: Instruction) -> bool:
        return not leaf_types(instruction.shape, self._types).isdisjoint(("c64", "c128"))

    # -- the plan ---------------------------------------------------------------------------

    def plan(self, instruction: Instruction) -> Plan:
        """The conversions an instruction needs. O(operands + parameters of applied computations).

        An operation that takes no low operand, or gives no low result, gets high ones; then, where
        it cannot take both at once, all low or all high ones.
        """
        if instruction.opcode in _BY_ELEMENTS and instruction.shape.is_tuple:
            return self._plan_by_elements(instruction)
        support, operands = self.support, instruction.operands
        low = [number for number, operand in enumerate(operands) if self.has_low(operand)]
        gives_low = self.has_low(instruction)
        if not (low or gives_low or instruction.called):
            return _NOTHING
        raised = [number for number in low if not support.supports_operand(instruction, number)]
        raises_result = gives_low and not support.supports_output(instruction)
        plan = Plan(raised, raises_result)
        if support.supports_mixed(instruction):
            return plan
        applied = self._applied(instruction)
        low_computations = [c for c in applied if self.low in self._types_of_ends(c)]
        has_low = len(low) > len(raised) or (gives_low and not raises_result) or low_computations
        has_high = (
            *(raised, raises_result, self.has_high(instruction), any(map(self.has_high, operands))),
            any(self.high in self._types_of_ends(computation) for computation in applied),
        )
        if not has_low or not any(has_high):
            return plan
        if not raises_result and self._can_all_be_low(instruction, raised):
            return Plan([], lowered=[n for n, o in enumerate(operands) if self.has_high(o)])
        return Plan(low, gives_low, computations=low_computations)

    def _plan_by_elements(self, instruction: Instruction) -> Plan:
        """The plan for an operation that gives a tuple with an element for each operand."""
        support, operands = self.support, instruction.operands
        low = [number for number, operand in enumerate(operands) if self.has_low(operand)]
        gives_low = self.has_low(instruction)
        cannot_give_low = gives_low and not support.supports_output(instruction)
        unsupported = [n for n in low if not support.supports_operand(instruction, n)]
        has_high = self.has_high(instruction) or any(map(self.has_high, operands))
        mixes = support.supports_mixed(instruction)
        all_are_raised = not mixes and bool(unsupported or cannot_give_low or has_high)
        raised = low if all_are_raised else unsupported
        is_mixed = gives_low and (has_high or bool(raised))
        raises_result = cannot_give_low or (is_mixed and not mixes)
        computations = self._applied(instruction) if raises_result else []
        return Plan(
            raised,
            raises_result,
            computations=[c for c in computations if self.low in self._types_of_ends(c)],
        )

    def _types_of_ends(self, computation: Computation) -> frozenset[str]:
        """The element types of parameters and root, which no conversion inside changes. O(1) once
        per computation."""
        found = self._ends.get(computation)
        if found is None:
            ends = (*computation.parameters, computation.root)
            found = frozenset().union(*(leaf_types(end.shape, self._types) for end in ends))
            self._ends[computation] = found
        return found

    def _applied(self, instruction: Instruction) -> list[Computation]:
        """The computations whose types have to go with the operands and the result."""
        if instruction.opcode in KEEP_COMPUTATIONS:
            return []
        return list(dict.fromkeys(instruction.called))

    def _can_all_be_low(self, instruction: Instruction, raised: list[int]) -> bool:
        """Whether rounding the operands of type high changes nothing, as the result is rounded."""
        types = leaf_types(instruction.shape, self._types)
        if instruction.called or raised or types != {self.low}:
            return False
        return all(
            self.support.supports_operand(instruction, number)
            and (
                passes_through(instruction, number)
                or self.support.rounds_operand(instruction, number)
            )
            for number, operand in enumerate(instruction.operands)
            if self.has_high(operand)
        )

    # -- the edits --------------------------------------------------------------------------

    def convert(self, instruction: Instruction, plan: Plan) -> None:
        """Make the conversions of a plan. O(operands + users + copied computations)."""
        for number in plan.raised:
            operand = instruction.operands[number]
            shape = with_type(operand.shape, self.low, self.high)
            instruction.replace_operand(number, converted(operand, shape))
        for number in plan.lowered:
            self._lower_operand(instruction, number)
        if plan.raises_result:
            self._raise_result(instruction)
        if plan.computations:
            copies = {c: self._raised_copy(c) for c in plan.computations}
            instruction.set_called(tuple(copies.get(c, c) for c in instruction.called))

    def _lower_operand(self, instruction: Instruction, number: int) -> None:
        """Convert an operand to low; where it comes from a convert of such a value, take that."""
        operand = instruction.operands[number]
        if operand.opcode is Opcode.CONVERT and operand.operands[0].shape.type_name == self.low:
            instruction.replace_operand(number, operand.operands[0])
            return
        shape = with_type(operand.shape, self.high, self.low)
        packed = instruction.shape.layout.element_bits
        if shape.is_array and packed:
            shape = shape.with_layout(shape.layout._replace(element_bits=packed))
        instruction.replace_operand(number, converted(operand, shape))

    def _raise_result(self, instruction: Instruction) -> None:
        """Let an instruction give high for low, and its users read that converted back.

        With excess precision a user that only converts the value to high is replaced by it.
        """
        original, users, was_root = instruction.shape, list(instruction.users), instruction.is_root
        instruction.set_shape(with_type(original, self.low, self.high))
        back = converted(instruction, original)
        undone: list[Instruction] = []
        for user in users:
            if self.excess_precision and _only_converts_to(user, instruction.shape):
                undone.append(user)
            else:
                user.exchange_operand(instruction, back)
        for user in undone:
            user.replace_all_uses_with(instruction)
        if was_root:
            instruction.parent.set_root(back)

    def _raised_copy(self, computation: Computation) -> Computation:
        """A copy of an applied computation with parameters and root of type high."""
        copy = clone_to_change(computation)
        copy.set_root(converted(copy.root, with_type(copy.root.shape, self.low, self.high)))
        for parameter in copy.parameters:
            if self.has_low(parameter):
                self._raise_result(parameter)
        return copy


def _only_converts_to(user: Instruction, shape: Shape) -> bool:
    return user.opcode is Opcode.CONVERT and user.shape is shape
