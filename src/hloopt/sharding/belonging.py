"""Whether two texts are one program before and after the partitioner."""

from __future__ import annotations

from hloopt.diagnostics import HloError, counted
from hloopt.ir.custom_targets import MANUAL_BOUNDARIES, custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import format_shape
from hloopt.sharding.shapes import DeviceShapes

_DUMP = (
    "dump both sides of the partitioner: "
    "XLA_FLAGS='--xla_dump_to=DIR --xla_dump_hlo_pass_re=spmd-partitioning'"
)


def check_belonging(before: Module, after: Module, shapes: DeviceShapes) -> None:
    """Raise HloError unless `after` can be what the partitioner made of `before`.

    Compared are the number of partitions, the stage of both texts, and the parameters and results
    on one device. O(instructions).
    """
    reason = _why_not_before(before) or _why_not_after(before, after)
    if reason is None:
        reason = _other_signature(before, after, shapes)
    if reason is not None:
        raise HloError(f"these texts do not belong together: {reason}", help=_DUMP)


def check_later(module: Module, after: Module) -> None:
    """Raise HloError unless a module can be a later stage of what the partitioner made, `after`.

    Compared are the numbers of partitions and the parameters. O(parameters).
    """
    if module.num_partitions != after.num_partitions or _parameters(module) != _parameters(after):
        raise HloError(
            f"{module.name} is no later stage of what the partitioner made in the dumps: it has "
            "other parameters or another number of partitions",
            help="give the folder of the dumps of its own compile",
        )


def _parameters(module: Module) -> list[str]:
    return [format_shape(p.shape, layout=False) for p in module.entry.parameters]


def _why_not_before(before: Module) -> str | None:
    if before.num_partitions < 2:
        return f"{before.name}, the first one, has num_partitions={before.num_partitions}"
    if "xla.sdy.meshes" in before.attributes.get("frontend_attributes", ""):
        return "the first one still has the shardings of Shardy, which are not propagated yet"
    for call in before.instructions(Opcode.CUSTOM_CALL):
        target = custom_call_target(call)
        is_shardy = target.startswith("xla.sdy.") and target not in MANUAL_BOUNDARIES
        if is_shardy or target == "Sharding":
            return f"%{call.name} of the first one calls {target}: nothing is propagated yet"
    if not any("sharding" in i.attributes for i in before.instructions()):
        return "no instruction of the first one has a sharding"
    return None


def _why_not_after(before: Module, after: Module) -> str | None:
    if after.num_partitions != before.num_partitions:
        return (
            f"the first one is for {counted(before.num_partitions, 'partition')}, the second one "
            f"for {after.num_partitions}"
        )
    late = next(after.instructions(Opcode.FUSION), None)
    if late is not None and next(before.instructions(Opcode.FUSION), None) is None:
        return f"%{late.name} of the second one is a fusion, which passes long after make"
    return None


def _other_signature(before: Module, after: Module, shapes: DeviceShapes) -> str | None:
    ours, theirs = before.entry.parameters, after.entry.parameters
    if len(ours) != len(theirs):
        return f"the first one has {counted(len(ours), 'parameter')}, the second one {len(theirs)}"
    for number, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if reason := _other_part(f"parameter {number}", mine, other, shapes):
            return reason
    return _other_part("the result", before.entry.root, after.entry.root, shapes)


def _other_part(
    name: str, mine: Instruction, other: Instruction, shapes: DeviceShapes
) -> str | None:
    leaves, theirs = mine.shape.leaves(), other.shape.leaves()
    is_same = len(leaves) == len(theirs) and all(
        leaf.type_name == their.type_name and (isinstance(told, str) or part == their.dimensions)
        for leaf, their, told, part in zip(
            leaves, theirs, shapes.told(mine), shapes.leaves(mine), strict=True
        )
    )
    if is_same:
        return None
    return (
        f"{name} is {format_shape(other.shape, layout=False)} in the second one, which is not the "
        f"part that %{mine.name} has on a device"
    )
