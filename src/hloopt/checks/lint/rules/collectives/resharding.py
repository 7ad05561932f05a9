"""Rules about data that is brought to every device, which then keeps a part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.analysis.device_values import DeviceValues
from hloopt.analysis.inventory.collectives import Collective, results_of
from hloopt.checks.doubts import not_partitioned
from hloopt.checks.lint.costs import collective_impact, collectives, runs_text
from hloopt.checks.lint.model import Finding, RuleOptions, rule
from hloopt.checks.lint.synchronous import synchronous_copy
from hloopt.checks.results import Impact
from hloopt.checks.view import View
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.options import Bytes, option

_HANDS_ON = frozenset(
    (
        *(Opcode.BITCAST, Opcode.COPY, Opcode.TRANSPOSE, Opcode.RESHAPE, Opcode.CONVERT),
        *(Opcode.OPT_BARRIER, Opcode.GET_TUPLE_ELEMENT),
    )
)
"""Opcodes whose result is the data of their operand in another form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReshardingOptions(RuleOptions):
    """Options of `gather-then-slice`."""

    size: Bytes = option(64 * 1024, "the least bytes that an all-gather leaves")


@rule("HLL108", "gather-then-slice", not_partitioned, options=ReshardingOptions)
def gather_then_slice(view: View, options: ReshardingOptions) -> Iterator[Finding]:
    """All-gathers of which each device keeps only a part of its own.

    O(instructions), and O(devices) for each index of a slice that is not known yet; where there are
    some once the pass for parts that the devices had.
    """
    values = DeviceValues(device_counts(view.subject.module))
    for each in collectives(view):
        if each.kind is not Opcode.ALL_GATHER or not each.wire or each.payload < options.size:
            continue
        slices = parts_of_devices(each, values)
        if not slices:
            continue
        start = each.instruction
        had = view.once("parts that devices had", lambda: _own_parts(view))
        if all(part.name in had for part in slices):
            received, advice = 0, "each had that before"
        else:
            received = sum(shape_bytes(part.shape) for part in slices)
            advice = "an all-to-all or a collective-permute would do"
        impact = collective_impact(view, each)
        kept = received * view.runs(start).times
        yield Finding(
            f"every device gathers %{start.name} and keeps the part of %{slices[0].name}: {advice}"
            f"{runs_text(view, start)}",
            start,
            Impact(impact.seconds, max(0, impact.moved - kept)),
            related=tuple(slices),
        )


def _own_parts(view: View) -> set[str]:
    """The names of the slices that are the operand of an all-gather, as the pass for them decides.

    It does not look through copies, which move nothing between devices.
    """
    from hloopt.pass_framework.base import PassContext
    from hloopt.passes.collectives.all_gather_dynamic_slice_simplifier import (
        AllGatherDynamicSliceSimplifier,
    )

    module, context = synchronous_copy(view).module, PassContext()
    for copy in list(module.instructions(Opcode.COPY)):
        if copy.shape is copy.operands[0].shape:
            copy.replace_all_uses_with(copy.operands[0])
    options = AllGatherDynamicSliceSimplifier.Options(
        allow_multiple_split_dims=True,
        allow_intervening_bitcast=True,
        allow_multiple_users=True,
    )
    AllGatherDynamicSliceSimplifier(options).run(module, context)
    return {r.instruction for r in context.remarks if r.kind == "applied"}


def parts_of_devices(gather: Collective, values: DeviceValues) -> list[Instruction]:
    """The slices, other ones on each device, that all that is read of a result goes through.

    None where anything else reads it.
    """
    found: dict[Instruction, None] = {}
    seen = set(waiting := results_of(gather))
    while waiting:
        value = waiting.pop()
        if not value.users or value.is_root:
            return []
        for user in value.users:
            if user.opcode is Opcode.DYNAMIC_SLICE and user.operands[0] is value:
                if not _differs(user, values):
                    return []
                found[user] = None
                continue
            for next_value in _handed_on(value, user):
                if next_value is None:
                    return []
                if next_value not in seen:
                    seen.add(next_value)
                    waiting.append(next_value)
    return list(found)


def _handed_on(value: Instruction, user: Instruction) -> Iterator[Instruction | None]:
    """Where a user hands a value on; None where it does something else with it."""
    if user.opcode in _HANDS_ON:
        yield user
    elif user.opcode is Opcode.FUSION:
        for number, operand in enumerate(user.operands):
            if operand is value:
                yield user.called[0].parameters[number]
    else:
        yield None


def _differs(part: Instruction, values: DeviceValues) -> bool:
    """Whether a dynamic-slice takes another part on some devices than on others, as is known."""
    numbers = [values.of(index) for index in part.operands[1:]]
    return all(each is not None for each in numbers) and any(
        len(set(each)) > 1 for each in numbers if each is not None
    )
