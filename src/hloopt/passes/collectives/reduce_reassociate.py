"""Combine two values before they are reduced over devices instead of after it."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from hloopt.ir.attributes.frontend_attributes import (
    common_frontend_attributes,
    frontend_attribute,
    set_frontend_attributes,
)
from hloopt.ir.attributes.scheduling_annotations import GROUP
from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.computation import Computation
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.devices.collective_mode import participants_key
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, repair_schedule
from hloopt.ir.reduction_kind import ReductionKind, operation_kind, reduction_kind
from hloopt.ir.shapes.shape import Shape
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.rewriting.conversions import is_widening, reduction_of_type
from hloopt.passes.rewriting.replace import (
    attributes_for_another_value,
    hand_value_on,
    replace_instruction,
)

_MOST_STEPS = 64
"""Longer ways from a collective are not followed, so that many of them stay linear."""
_REARRANGING = (Opcode.RESHAPE, Opcode.SLICE)
_NEUTRAL = {
    ReductionKind.SUM: ("0", "-0"),
    ReductionKind.PRODUCT: ("1",),
    ReductionKind.MIN: ("inf", "true"),
    ReductionKind.MAX: ("-inf", "false"),
}
"""Literals of values that change nothing when they are reduced with others."""


@dataclass(frozen=True, slots=True)
class _Reduced:
    """A collective, and what leads from it to an operand, in order."""

    collective: Instruction
    steps: tuple[Instruction, ...] = ()


class _Reassociate(ModulePass):
    """Works on all operations of a module; what comes before a collective is up to a subclass."""

    opcode: ClassVar[Opcode]

    def run(self, module: Module, context: PassContext) -> bool:
        channel_ids = unused_channel_ids(module)
        changed: dict[Computation, None] = {}
        for computation in module.computations_with(self.opcode):
            for operation in post_order(computation):
                kind = operation_kind(operation)
                if kind is None:
                    continue
                reduced = [self.behind(operand, kind) for operand in operation.operands]
                left, right = reduced if len(reduced) == 2 else (None, None)
                if left is None or right is None:
                    continue
                reason = self._why_not_one(left, right, kind) or self.why_not(
                    operation, left, right
                )
                if reason is not None:
                    context.missed(right.collective, reason)
                    continue
                names = f"%{left.collective.name} and %{right.collective.name}"
                what = f"combines what {names} reduced, which is done once now"
                if not context.apply(operation, what):
                    break
                context.count("operations moved before collectives")
                changed[computation] = None
                self.reassociate(operation, left, right, channel_ids)
        repair_schedule(changed)
        return bool(changed)

    def behind(self, value: Instruction, kind: ReductionKind) -> _Reduced | None:
        """The collective that gives a value."""
        return _Reduced(value) if value.opcode is self.opcode else None

    def why_not(self, operation: Instruction, left: _Reduced, right: _Reduced) -> str | None:
        """The reason why two collectives of one kind stay; None where they need not."""
        return None

    def reassociate(
        self,
        operation: Instruction,
        left: _Reduced,
        right: _Reduced,
        channel_ids: Iterator[int],
    ) -> None:
        """Let the operation work on what is reduced, and one collective reduce its result."""
        first, second = left.collective, right.collective
        values = [first.operands[0], second.operands[0]]
        combined = operation.parent.add(
            operation.opcode, values[0].shape, values, name=operation.name
        )
        result = _merged(first, second, combined, first.shape, channel_ids)
        for step in left.steps:
            result = operation.parent.add(
                step.opcode,
                step.shape,
                [result, *step.operands[1:]],
                name=step.name,
                attributes=step.attributes,
            )
        replace_instruction(operation, result)
        for reduced in (left, right):
            for dead in (*reversed(reduced.steps), reduced.collective):
                if dead in dead.parent:
                    dead.parent.remove(dead)

    def _why_not_one(self, left: _Reduced, right: _Reduced, kind: ReductionKind) -> str | None:
        first, second = left.collective, right.collective
        for collective in (first, second):
            name = f"%{collective.name}"
            if len(collective.operands) != 1 or collective.has_control_dependencies:
                return f"{name} has several operands or control dependencies"
            if constrains_layout(collective):
                return f"the layout of {name} is constrained"
            if reduction_kind(collective.called[0]) is not kind:
                return f"{name} is not a {kind}"
        if _kind(first) != _kind(second):
            return f"it differs from %{first.name} in groups, channel, dimension or types"
        group, other = (frontend_attribute(c, GROUP) for c in (first, second))
        if None not in (group, other) and group != other:
            return f"it is to be scheduled with others than %{first.name}"
        for reduced in (left, right):
            for value in (reduced.collective, *reduced.steps):
                if len(value.users) > 1 or value.is_root:
                    return f"%{value.name} has several users"
        return None


def _why_not_same_shape(left: _Reduced, right: _Reduced) -> str | None:
    first, second = left.collective, right.collective
    if first.operands[0].shape is second.operands[0].shape:
        return None
    return f"%{first.name} reduces values of another shape"


def _kind(collective: Instruction) -> Hashable:
    """The key that two collectives must share to become one."""
    own_type = collective.called[0].root.shape.type_name
    return (
        participants_key(collective),
        "channel_id" in collective.attributes,
        collective.attributes.get("dimensions"),
        None if own_type == collective.shape.type_name else own_type,
        frontend_attribute(collective, "collective_group_key"),
    )


def _merged(
    first: Instruction,
    second: Instruction,
    operand: Instruction,
    shape: Shape,
    channel_ids: Iterator[int],
) -> Instruction:
    """A collective like two others, with what their annotations have in common."""
    result = operand.parent.add(
        first.opcode,
        shape,
        [operand],
        name=first.name,
        attributes=attributes_for_another_value(first),
        called=(reduction_of_type(first.called[0], shape.type_name),)
        if shape.type_name != first.shape.type_name
        else first.called,
    )
    if "channel_id" in first.attributes:
        result.set_attribute("channel_id", str(next(channel_ids)))
    if "frontend_attributes" in first.attributes:
        set_frontend_attributes(result, common_frontend_attributes(first, second))
    return result


@register(
    "reduce-scatter-reassociate",
    preserves="rounding",
    xla=XlaPass("ReduceScatterReassociate", "xla/service/reduce_scatter_reassociate.h"),
)
class ReduceScatterReassociate(_Reassociate):
    """Replace `reduce-scatter(x) + reduce-scatter(y)` by `reduce-scatter(x + y)`.

    Also for products, minima and maxima, where that is what is reduced. Both must have the same
    groups, dimension and types, one user, and agree in `collective_group_key`; frontend attributes
    that only one has are dropped. A chain or tree of sums ends in one collective. In floating
    point the sums are rounded in another order. Asked of XLA:GPU's compiler: conditions and the
    result. But the group key is newer, 0.10.2 keeps the frontend attributes of the first, and one
    reduce-scatter with a constrained layout keeps it from changing any. Linear in the module's
    size.
    """

    opcode = Opcode.REDUCE_SCATTER

    def why_not(self, operation: Instruction, left: _Reduced, right: _Reduced) -> str | None:
        return _why_not_same_shape(left, right)


@register(
    "all-reduce-reassociate",
    preserves="rounding",
    xla=XlaPass("AllReduceReassociate", "xla/hlo/transforms/collectives/all_reduce_reassociate.h"),
)
class AllReduceReassociate(_Reassociate):
    """Replace `all-reduce(x) + all-reduce(y)` by `all-reduce(x + y)`.

    Also for products, minima and maxima, where that is what is reduced. What is added may be
    reshaped, sliced, or padded with what changes nothing, as long as not more is reduced in the
    end than before, or be one and the same dynamic-slice of both results, which then comes after
    the sum. Both must have the same groups and types, one user, and agree in
    `collective_group_key`; frontend attributes that only one has are dropped. A chain or tree of
    sums ends in one collective. In floating point the sums are rounded in another order. Asked of
    XLA:GPU's compiler: conditions and the result. But the group key is newer, 0.10.2 keeps the
    frontend attributes of the first, and converts of integers, which would overflow later, stay
    behind the all-reduce. Linear in the module's size.
    """

    opcode = Opcode.ALL_REDUCE

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        reassociate_converted_ar: bool = option(
            False, "also where results are converted to a floating-point type that holds them"
        )

    options: Options

    def behind(self, value: Instruction, kind: ReductionKind) -> _Reduced | None:
        if value.opcode is Opcode.DYNAMIC_SLICE and value.operands[0].opcode is self.opcode:
            return _Reduced(value.operands[0], (value,))
        steps: list[Instruction] = []
        while value.opcode is not self.opcode:
            if len(steps) == _MOST_STEPS or not self._can_come_first(value, kind):
                return None
            steps.append(value)
            value = value.operands[0]
        return _Reduced(value, tuple(reversed(steps)))

    def why_not(self, operation: Instruction, left: _Reduced, right: _Reduced) -> str | None:
        slices = [_is_late(reduced) for reduced in (left, right)]
        if all(slices):
            (first,), (second,) = left.steps, right.steps
            if first.operands[1:] != second.operands[1:] or first.shape is not second.shape:
                return f"%{second.name} slices another part than %{first.name}"
            if first.has_control_dependencies or second.has_control_dependencies:
                return f"%{first.name} or %{second.name} has control dependencies"
            return _why_not_same_shape(left, right)
        if any(slices):
            return "only one of the two is sliced dynamically"
        sizes = [reduced.collective.shape.element_count() for reduced in (left, right)]
        if operation.shape.element_count() > sum(sizes):
            return f"%{operation.name} has more elements than both of them"
        return None

    def reassociate(
        self,
        operation: Instruction,
        left: _Reduced,
        right: _Reduced,
        channel_ids: Iterator[int],
    ) -> None:
        if _is_late(left):
            super().reassociate(operation, left, right, channel_ids)
            return
        first, second = left.collective, right.collective
        merged = _merged(first, second, operation, operation.shape, channel_ids)
        hand_value_on(operation, merged)
        for collective in dict.fromkeys((first, second)):
            collective.replace_all_uses_with(collective.operands[0])
            collective.parent.remove(collective)

    def _can_come_first(self, step: Instruction, kind: ReductionKind) -> bool:
        """Whether an instruction can work on what is reduced as well as on the result."""
        match step.opcode:
            case Opcode.PAD:
                fill = step.operands[1]
                return fill.opcode is Opcode.CONSTANT and (
                    canonical_literal(fill.payload, fill.shape) in _NEUTRAL[kind]
                )
            case Opcode.CONVERT:
                is_same = step.shape.element_type is step.operands[0].shape.element_type
                return is_same or (self.options.reassociate_converted_ar and is_widening(step))
            case opcode:
                return opcode in _REARRANGING


def _is_late(reduced: _Reduced) -> bool:
    return any(step.opcode is Opcode.DYNAMIC_SLICE for step in reduced.steps)
