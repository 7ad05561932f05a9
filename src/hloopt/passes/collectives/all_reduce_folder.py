"""Fold an all-reduce of an all-reduce into one with larger groups."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from hloopt.ir.attributes.frontend_attributes import (
    common_frontend_attributes,
    set_frontend_attributes,
)
from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.attributes.values import format_int_lists
from hloopt.ir.attributes.values.replica_groups import MOST_DEVICES
from hloopt.ir.computation import Computation
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.devices.collective_mode import CollectiveMode, collective_mode, replica_groups
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, repair_schedule
from hloopt.ir.reduction_kind import reduction_kind
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import replace_instruction

_Groups = list[tuple[int, ...]]


@register(
    "all-reduce-folder",
    preserves="rounding",
    xla=XlaPass("AllReduceFolder", "xla/hlo/transforms/simplifiers/all_reduce_folder.h"),
)
class AllReduceFolder(ModulePass):
    """Fold an all-reduce whose only user is another all-reduce into that one.

    Sums within {0,1} and {2,3}, summed up within {0,2} and {1,3}, are sums within {0,1,2,3}. Both
    have the same reduction (sum, product, minimum or maximum), listed groups in the same mode, and
    every device has to count once in each result. Frontend attributes that both have alike stay.
    Asked of XLA:GPU's compiler: conditions, order of devices and channel (a new one if there was
    one). Unlike there, all-reduces over all partitions, which would count each partition twice,
    stay. Linear in the module's size, and O(devices) per pair.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        channel_ids = unused_channel_ids(module)
        changed: dict[Computation, None] = {}
        for computation in module.computations_with(Opcode.ALL_REDUCE):
            for outer in post_order(computation):
                if outer.opcode is not Opcode.ALL_REDUCE or not outer.operands:
                    continue
                inner = outer.operands[0]
                if inner.opcode is not Opcode.ALL_REDUCE:
                    continue
                groups = _why_not(inner, outer) or _folded(inner, outer)
                if isinstance(groups, str):
                    context.missed(inner, groups)
                    continue
                if not context.apply(inner, f"folded into %{outer.name}"):
                    break
                context.count("all-reduces folded")
                changed[computation] = None
                _fold(inner, outer, groups, channel_ids)
        repair_schedule(changed)
        return bool(changed)


def _why_not(inner: Instruction, outer: Instruction) -> str | None:
    if len(inner.users) > 1 or inner.is_root:
        return f"not only %{outer.name} uses it"
    for collective in (inner, outer):
        if len(collective.operands) != 1 or collective.has_control_dependencies:
            return f"%{collective.name} has several operands or control dependencies"
        if constrains_layout(collective):
            return f"the layout of %{collective.name} is constrained"
        if replica_groups(collective).named_count > MOST_DEVICES:
            return f"%{collective.name} names more than {MOST_DEVICES:,} devices"
    kinds = [reduction_kind(collective.called[0]) for collective in (inner, outer)]
    if kinds[0] is None or kinds[0] is not kinds[1]:
        return f"%{outer.name} reduces in another way"
    modes = [collective_mode(collective) for collective in (inner, outer)]
    if modes[0] is not modes[1]:
        return f"its mode is {modes[0]}, that of %{outer.name} is {modes[1]}"
    module = inner.parent.module
    if modes[0] is CollectiveMode.CROSS_REPLICA_AND_PARTITION and module.num_partitions > 1:
        return "both reduce over all partitions"
    return None


def _folded(inner: Instruction, outer: Instruction) -> _Groups | str:
    """The groups in which both together reduce, or why these are none."""
    first, second = (replica_groups(collective).lists() for collective in (inner, outer))
    if not first or not second:
        return f"%{(outer if first else inner).name} lists no groups"
    group_of = {device: group for group in first for device in group}
    # Groups that are reduced together are named by the first device of each.
    together = [tuple(sorted(group_of.get(d, (d,))[0] for d in group)) for group in second]
    for names in together:
        if len(set(names)) < len(names):
            return f"%{outer.name} would count a device twice"
    devices: dict[tuple[int, ...], set[int]] = {}
    """The devices whose values are reduced, for groups that are reduced together."""
    for names, group in zip(together, second, strict=True):
        devices.setdefault(names, set()).update(group)
    folded = []
    for names, found in devices.items():
        members = chain.from_iterable(group_of.get(name, (name,)) for name in names)
        if not found.issuperset(members):
            return f"its groups and those of %{outer.name} make up no larger ones"
        folded.append(tuple(sorted(found)))
    return sorted(folded)


def _fold(
    inner: Instruction, outer: Instruction, groups: _Groups, channel_ids: Iterator[int]
) -> None:
    result = outer.parent.add(
        Opcode.ALL_REDUCE,
        outer.shape,
        [inner.operands[0]],
        attributes={**outer.attributes, "replica_groups": format_int_lists(groups)},
        called=outer.called,
    )
    if "channel_id" in outer.attributes:
        result.set_attribute("channel_id", str(next(channel_ids)))
    common = common_frontend_attributes(outer, inner)
    set_frontend_attributes(outer, {})
    replace_instruction(outer, result)
    set_frontend_attributes(result, common)
    inner.parent.remove(inner)
