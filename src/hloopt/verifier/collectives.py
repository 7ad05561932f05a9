"""Rules about collectives: which devices take part, and what each of them gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes.typed import constrains_layout, dimensions_of, pairs_of
from hloopt.ir.devices.collective_mode import CollectiveMode, collective_mode, replica_groups
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shape_inference.operation import show
from hloopt.ir.shapes.shape import Shape
from hloopt.verifier.options import Setting
from hloopt.verifier.report import broken
from hloopt.verifier.rules import GATHERING, REDUCING


class _Mode:
    """The meaning of the numbers in replica groups."""

    def __init__(
        self, name: CollectiveMode, members: str, device_count: int, devices_per_member: int
    ) -> None:
        self.name = name
        self.members = members
        self.device_count = device_count
        """The number of devices in all groups; 1 where the module does not say."""
        self.devices_per_member = devices_per_member


def _mode(instruction: Instruction, setting: Setting) -> _Mode:
    replicas, partitions = setting.replica_count, setting.num_partitions
    mode = collective_mode(instruction)
    match mode:
        case CollectiveMode.FLATTENED_ID:
            if not {"channel_id", "mode"} & instruction.attributes.keys():
                raise HloVerifyError("Cannot have use_global_device_ids=true without channel_id")
            return _Mode(mode, "flattened IDs", replicas * partitions, 1)
        case CollectiveMode.CROSS_PARTITION:
            return _Mode(mode, "partitions", partitions, 1)
        case CollectiveMode.CROSS_REPLICA_AND_PARTITION:
            return _Mode(mode, "replicas", replicas, partitions)
        case CollectiveMode.CROSS_REPLICA:
            return _Mode(mode, "replicas", replicas, 1)


def check_replica_groups(instruction: Instruction, setting: Setting) -> None:
    """Replica groups hold each of the devices 0, 1, 2, … once, as many as the module runs on.

    No groups at all stand for one group of every device, except with flattened ids. Only an
    all-reduce may have groups of different sizes.
    """
    mode = _mode(instruction, setting)
    groups = replica_groups(instruction)
    if not groups.group_count:
        if mode.name is CollectiveMode.FLATTENED_ID:
            raise HloVerifyError("Replica groups must be specified in flattened-id mode")
        return
    if groups.explicit:
        _check_lists(groups.explicit, instruction.opcode)
        found = sum(map(len, groups.explicit))
    else:  # a formula, which gives each device once
        found = groups.group_count * groups.group_size
    if setting.options.check_replica_groups and mode.device_count not in (1, found):
        raise HloVerifyError(
            f"In {mode.name} mode, replica groups should contain {mode.device_count} "
            f"{mode.members}, but found {found}"
        )


def _check_lists(lists: Sequence[Sequence[int]], opcode: Opcode) -> None:
    if not all(lists):
        raise HloVerifyError("Instruction cannot have an empty replica group")
    _check_each_once([member for group in lists for member in group])
    sizes = {len(group) for group in lists}
    if len(sizes) > 1 and opcode not in REDUCING:
        raise HloVerifyError(
            f"Replica groups expected to be of uniform size, found sizes {min(sizes)} to "
            f"{max(sizes)}"
        )


def _check_each_once(members: list[int]) -> None:
    if len(set(members)) < len(members):
        repeated = next(member for member, count in Counter(members).items() if count > 1)
        raise HloVerifyError(f"Replica {repeated} is repeated in instruction's replica-groups")
    for member in members:
        if not 0 <= member < len(members):
            raise HloVerifyError(
                f"Replica {member} is out of range (should be in [0, {len(members)}) range) in "
                "instruction's replica-groups"
            )


def _group_size(instruction: Instruction, setting: Setting) -> int:
    """Devices in a group; 1 where nothing says how many there are."""
    mode = _mode(instruction, setting)
    return (replica_groups(instruction).group_size or mode.device_count) * mode.devices_per_member


def check_gathered_sizes(instruction: Instruction, setting: Setting) -> None:
    """The large side of an all-gather or reduce-scatter is the small one times the group size."""
    operands = [operand.shape for operand in instruction.operands]
    result = instruction.shape
    if instruction.opcode is Opcode.ALL_GATHER_START:
        if len(result.elements) != 2:
            raise HloVerifyError(
                "the shape of an all-gather-start is a tuple of operands "
                f"and results, not {show(result)}"
            )
        result = result.elements[1]
    is_gather = instruction.opcode in GATHERING
    dimension = _dimension(instruction)
    for number, operand in enumerate(operands):
        if not (operand.is_array and 0 <= dimension < operand.rank):
            raise HloVerifyError(
                f"operand {number} is "
                f"{show(operand)}, an array with a dimension {dimension} is "
                "needed"
            )
    if len(operands) > 1 and len(result.elements) != len(operands):
        raise HloVerifyError(
            f"{len(operands)} operands need a tuple of as many results, not {show(result)}"
        )
    subgroup_size = _group_size(instruction, setting)
    results = result.elements if result.is_tuple else (result,)
    for small, large in zip(operands, results, strict=False):
        if not is_gather:
            small, large = large, small
        if not (dimension < min(small.rank, large.rank) and small.dimensions[dimension] > 0):
            continue  # shape inference says more about these
        if large.dimensions[dimension] < 0:
            continue
        shard_count = large.dimensions[dimension] // small.dimensions[dimension]
        if subgroup_size not in (1, shard_count):
            raise HloVerifyError(
                f"shard_count = {shard_count}, subgroup_size = {subgroup_size}: dimension "
                f"{dimension} grows or shrinks by another factor than the replica groups have "
                "members"
            )


def _dimension(instruction: Instruction) -> int:
    return dimensions_of(instruction)[0]


def check_all_to_all(instruction: Instruction, setting: Setting) -> None:
    """An all-to-all of tuples has an operand per member of a group, all of one shape and layout;
    one of an array splits a dimension into equal parts."""
    operands = [operand.shape for operand in instruction.operands]
    has_groups = replica_groups(instruction).group_count > 0
    split_count = _group_size(instruction, setting)
    if "dimensions" in instruction.attributes:
        dimension = _dimension(instruction)
        if operands and 0 <= dimension < operands[0].rank:
            size = operands[0].dimensions[dimension]
            if size >= 0 and size % split_count:
                raise HloVerifyError(
                    f"AllToAll split dimension size {size} must be dividable by split_count "
                    f"{split_count}"
                )
        return
    for number, shape in enumerate(operands):
        if shape is not operands[0]:
            raise HloVerifyError(
                "HLO all-to-all has operands with different shapes: the 0th operand shape "
                f"{operands[0].text}, but the {number}th operand has shape {shape.text}"
            )
    if (has_groups or split_count > 1) and len(operands) != split_count:
        raise HloVerifyError(
            f"an all-to-all of {len(operands)} operands for groups of {split_count}"
        )


def check_ragged_all_to_all(instruction: Instruction, setting: Setting) -> None:
    """Offsets and sizes of a ragged-all-to-all are integer vectors or matrices of one shape."""
    operands = [operand.shape for operand in instruction.operands]
    if len(operands) != 6:
        raise HloVerifyError(f"RaggedAllToAll must have 6 operands, found {len(operands)}")
    for number in range(2, 6):
        shape = operands[number]
        if not (shape.is_array and shape.rank in (1, 2)):
            raise HloVerifyError(
                f"RaggedAllToAll operand {number} must be rank 1 or 2, not {show(shape)}"
            )
        if shape.dimensions != operands[2].dimensions:
            raise HloVerifyError(
                "RaggedAllToAll has operands with different shapes: operand 2 is "
                f"{show(operands[2])}, operand {number} is "
                f"{show(shape)}"
            )


def check_source_target_pairs(instruction: Instruction, setting: Setting) -> None:
    """Each device sends to and receives from one other at most; devices are those of the module.

    The in-place form, with offsets, lets a device send twice where the lists of offsets say so.
    """
    pairs = pairs_of(instruction)
    limit = _mode(instruction, setting).device_count
    for what, devices in (("Source", [s for s, _ in pairs]), ("Target", [t for _, t in pairs])):
        _check_range(what, devices, limit)
    is_in_place = "slice_sizes" in instruction.attributes
    allowed = max(_check_in_place(instruction), 1) if is_in_place else 1
    for what, devices in (("Source", [s for s, _ in pairs]), ("Target", [t for _, t in pairs])):
        device, count = max(Counter(devices).items(), key=lambda item: item[1], default=(0, 0))
        if count > allowed:
            times = "more than once" if allowed == 1 else f"more than {allowed} times"
            raise HloVerifyError(
                f"{what} {device} appears {times} in instruction's source-target pairs: "
                f"{instruction.attributes.get('source_target_pairs')}"
            )


def _check_range(what: str, devices: Iterable[int], limit: int) -> None:
    for device in devices:
        place = f"{what} {device} in the instruction's source-target pair"
        if device < 0:
            raise HloVerifyError(f"{place} must be >= 0")
        if limit > 1 and device >= limit:
            raise HloVerifyError(f"{place} must be < {limit}")


def _check_in_place(instruction: Instruction) -> int:
    """Check input, output and their offsets against each other; how often a device may send."""
    if len(instruction.operands) != 4:
        raise HloVerifyError("an in-place collective-permute has 4 operands")
    source, target, source_offsets, target_offsets = (o.shape for o in instruction.operands)
    if source.is_tuple != target.is_tuple or len(source.elements) != len(target.elements):
        raise HloVerifyError("Unmatching input buffers and output buffers.")
    per_buffer = []
    for buffer, offsets, what in (
        (source, source_offsets, "input"),
        (target, target_offsets, "output"),
    ):
        buffers = buffer.elements if buffer.is_tuple else (buffer,)
        lists = offsets.elements if buffer.is_tuple else (offsets,)
        if len(buffers) != len(lists):
            raise HloVerifyError(f"Unmatching {what} buffers and {what} offset.")
        for array, starts in zip(buffers, lists, strict=True):
            per_buffer.append(_offset_count(array.rank, starts, what))
    return max(per_buffer, default=1)


def _offset_count(rank: int, offsets: Shape, what: str) -> int:
    """The number of offsets of `rank` scalars `offsets` holds."""
    single = all(element.is_scalar for element in offsets.elements)
    lists = (offsets,) if single else offsets.elements
    if not offsets.is_tuple or any(
        len(one.elements) != rank or not all(e.is_scalar for e in one.elements) for one in lists
    ):
        raise HloVerifyError(f"Unmatching {what} buffers and {what} offset.")
    return len(lists)


def check_constrained_layouts(
    module: Module, found: Sequence[Instruction], setting: Setting
) -> Iterator[HloVerifyError]:
    """Either all all-reduces of a module constrain their layouts, or none does."""
    constrained = [
        i
        for i in found
        if "constrain_layout" in (i.attribute_text or i.attributes) and constrains_layout(i)
    ]
    if constrained and len(constrained) < len(found):
        yield broken(
            constrained[0],
            "HloModule has a mix of layout constrained and unconstrained AllReduce instructions, "
            "this one is constrained",
        )
