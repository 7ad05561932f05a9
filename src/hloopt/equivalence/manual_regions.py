"""Manual regions (`shard_map`) of a program for all devices, in operations that every engine runs.

Between the custom calls `xla.sdy.GlobalToLocalShape` and `xla.sdy.LocalToGlobalShape`, or
`SPMDFullToShardShape` and `SPMDShardToFullShape`, each device computes on its part of the arrays.
All devices run the program, with whole arrays outside of these regions: the first call becomes a
slice that depends on the number of the device, the second one gathers the parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from hloopt.interpreter.errors import RunError, cannot_run
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.values import format_int_lists, format_ints, parse_frontend_attributes
from hloopt.ir.attributes.values.replica_groups import Mesh, SubAxis
from hloopt.ir.attributes.values.shards import Place, Shards, mesh_shards, shards_of
from hloopt.ir.attributes.values.shardy import (
    parse_manual_axes,
    parse_shardy_meshes,
    parse_shardy_shardings,
)
from hloopt.ir.clone import clone_module
from hloopt.ir.custom_targets import MANUAL_BOUNDARIES, TO_PARTS, custom_call_target
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.leaf_annotations import leaf_shardings
from hloopt.ir.shapes.shape import array_shape, without_layout
from hloopt.ir.tuples import make_tuple


def boundaries_of(module: Module) -> list[Instruction]:
    """The custom calls where manual regions begin and end and arrays change their size."""
    return [
        call
        for call in module.instructions(Opcode.CUSTOM_CALL)
        if custom_call_target(call) in MANUAL_BOUNDARIES
        and [operand.shape.dimensions for operand in call.operands]
        != [leaf.dimensions for leaf in call.shape.leaves()]
    ]


def without_boundaries(module: Module, grid: Grid) -> Module:
    """A copy of a module for all of `grid` in which plain operations stand for the boundaries.

    Raises RunError where the text does not say which device has which part. O(instructions).
    """
    found = {call: list(_shards(call, grid.partitions)) for call in boundaries_of(module)}
    copy, computations = clone_module(module)
    named = {(computations[call.parent], call.name): shards for call, shards in found.items()}
    calls = [
        (call, named[call.parent, call.name])
        for call in list(copy.instructions(Opcode.CUSTOM_CALL))
        if (call.parent, call.name) in named
    ]
    rewriter = _Rewriter(copy, grid)
    for call, shards in calls:
        rewriter.replace(call, shards)
    return copy


# -- which part is whose --------------------------------------------------------------------------


def _shards(call: Instruction, partitions: int) -> Iterator[Shards]:
    """For each array, the parts along the dimensions that change, and who has them.

    Devices of one group have the parts of one array.
    """
    target = custom_call_target(call)
    begins = target in TO_PARTS
    if target.startswith("xla.sdy."):
        all_shards: Sequence[Shards | str] = _of_shardy(call, partitions, begins=begins)
    else:
        all_shards = _of_gspmd(call, partitions, begins=begins)
    results = call.shape.leaves()
    if not len(all_shards) == len(results) == len(call.operands):
        raise cannot_run(call, "its shardings are not one for each operand", "HLO501")
    for operand, result, shards in zip(call.operands, results, all_shards, strict=True):
        if isinstance(shards, str):
            raise cannot_run(call, shards, "HLO501")
        whole, part = operand.shape.dimensions, result.dimensions
        if not begins:
            whole, part = part, whole
        if whole != tuple(n * k for n, k in zip(part, shards.counts, strict=True)):
            raise cannot_run(
                call,
                f"parts of {list(part)} are not {list(shards.counts)} of {list(whole)}",
                "HLO501",
            )
        if None in shards.places:
            raise cannot_run(call, "its shardings leave devices out", "HLO501")
        yield shards


def _of_shardy(call: Instruction, partitions: int, *, begins: bool) -> list[Shards | str]:
    header = call.parent.module.attributes.get("frontend_attributes", "{}")
    meshes = parse_shardy_meshes(parse_frontend_attributes(header).get("xla.sdy.meshes", ""))
    name = "xla.sdy.in_shardings" if begins else "xla.sdy.out_shardings"
    text, axes = (frontend_attribute(call, n) for n in (name, "xla.sdy.manual_axes"))
    if text is None or axes is None:
        raise cannot_run(
            call, f"it has no frontend attributes {name}, xla.sdy.manual_axes", "HLO501"
        )
    manual = frozenset(parse_manual_axes(axes))
    return [
        _along(manual, sharding.mesh, sharding.dimensions, partitions)
        for sharding in parse_shardy_shardings(text, meshes)
    ]


def _along(
    manual: frozenset[str], mesh: Mesh, dimensions: Sequence[Sequence[SubAxis]], partitions: int
) -> Shards | str:
    """The parts along the manual axes only; those along the others are the partitioner's."""
    kept = [[axis for axis in axes if axis.axis in manual] for axes in dimensions]
    others = [SubAxis(name) for name, _ in mesh.axes if name not in manual]
    return mesh_shards(mesh, kept, partitions, others)


def _of_gspmd(call: Instruction, partitions: int, *, begins: bool) -> list[Shards | str]:
    sharded = call.operands[0] if begins else call
    texts = leaf_shardings(sharded)
    if texts is None:
        raise cannot_run(
            call, f"%{sharded.name} has no sharding that says who has which part", "HLO501"
        )
    before, after = call.operands[0].shape.dimensions, call.shape.dimensions
    found = shards_of(texts[0], len(before), partitions)
    if isinstance(found, str):
        return [found]
    counts = tuple(max(m, n) // max(1, min(m, n)) for m, n in zip(before, after, strict=True))
    if any(own % count for own, count in zip(found.counts, counts, strict=True)):
        return [f"%{sharded.name} has sharding={texts[0]}, which has no {list(counts)} parts"]
    # The partitioner cuts what manual axes leave of a dimension further.
    finer = [own // count for own, count in zip(found.counts, counts, strict=True)]
    places = tuple(
        place and tuple(n // k for n, k in zip(place, finer, strict=True)) for place in found.places
    )
    return [Shards(counts, places, found.groups)]


# -- rewriting ------------------------------------------------------------------------------------


class _Rewriter:
    """Puts operations in place of boundaries, one call after the other."""

    def __init__(self, module: Module, grid: Grid) -> None:
        self._grid = grid
        self._channels = unused_channel_ids(module)

    def replace(self, call: Instruction, all_shards: Sequence[Shards]) -> None:
        make = self._part if custom_call_target(call) in TO_PARTS else self._whole
        arrays = [
            operand if prod(shards.counts) == 1 else make(operand, shards)
            for operand, shards in zip(call.operands, all_shards, strict=True)
        ]
        call.drop_control_dependencies()
        result = make_tuple(call.parent, arrays) if call.shape.is_tuple else arrays[0]
        call.replace_all_uses_with(result)
        call.parent.remove(call)

    def _part(self, array: Instruction, shards: Shards) -> Instruction:
        """The part of a whole array that a device has."""
        parent = array.parent
        sizes = shards.part(array.shape.dimensions)
        number = parent.add(Opcode.PARTITION_ID, array_shape("u32"))
        starts = []
        for dimension, size in enumerate(sizes):
            offsets = [place[dimension] * size for place in shards.places if place is not None]
            starts.append(_lookup(number, offsets))
        return parent.add(
            Opcode.DYNAMIC_SLICE,
            array_shape(array.shape.type_name, sizes),
            [array, *starts],
            attributes={"dynamic_slice_sizes": format_ints(sizes)},
        )

    def _whole(self, part: Instruction, shards: Shards) -> Instruction:
        """The whole array of the parts of all devices in a group."""
        sizes, name = part.shape.dimensions, part.shape.type_name
        groups = _in_order(shards)
        count = prod(shards.counts)
        copies = len(groups[0]) // count
        row = _reshape(part, (1, *sizes))
        rows = part.parent.add(
            Opcode.ALL_GATHER,
            array_shape(name, (len(groups[0]), *sizes)),
            [row],
            attributes={
                "channel_id": str(next(self._channels)),
                "replica_groups": format_int_lists(self._device_groups(groups)),
                "dimensions": "{0}",
                "use_global_device_ids": "true",
            },
        )
        if copies > 1:  # parts that several devices have come one after the other
            rows = part.parent.add(
                Opcode.SLICE,
                array_shape(name, (count, *sizes)),
                [rows],
                attributes={"slice": _slices((len(groups[0]), *sizes), copies)},
            )
        tiled = _reshape(rows, (*shards.counts, *sizes))
        rank = len(sizes)
        order = [d for dimension in range(rank) for d in (dimension, rank + dimension)]
        mixed = part.parent.add(
            Opcode.TRANSPOSE,
            array_shape(name, tuple(tiled.shape.dimensions[d] for d in order)),
            [tiled],
            attributes={"dimensions": format_ints(order)},
        )
        return _reshape(mixed, tuple(n * k for n, k in zip(sizes, shards.counts, strict=True)))

    def _device_groups(self, groups: Sequence[Sequence[int]]) -> tuple[tuple[int, ...], ...]:
        """Groups of partitions as groups of devices, for each replica."""
        return tuple(
            tuple(replica * self._grid.partitions + partition for partition in group)
            for replica in range(self._grid.replicas)
            for group in groups
        )


def _in_order(shards: Shards) -> list[list[int]]:
    """The devices of each group by the part they have."""
    groups: dict[int, list[tuple[Place, int]]] = {}
    for device, (group, place) in enumerate(zip(shards.groups, shards.places, strict=True)):
        assert place is not None
        groups.setdefault(group, []).append((place, device))
    ordered = [sorted(members) for members in groups.values()]
    places = [[place for place, _ in members] for members in ordered]
    if any(other != places[0] for other in places) or len(places[0]) % prod(shards.counts):
        raise RunError("devices of a manual region have different numbers of parts")
    return [[device for _, device in members] for members in ordered]


def _lookup(number: Instruction, values: Sequence[int]) -> Instruction:
    """One of `values`, by number, as s32[]."""
    parent = number.parent
    if not any(values):
        return parent.add(Opcode.CONSTANT, array_shape("s32"), payload="0")
    table = parent.add(
        Opcode.CONSTANT,
        array_shape("s32", (len(values),)),
        payload="{" + ", ".join(map(str, values)) + "}",
    )
    found = parent.add(
        Opcode.DYNAMIC_SLICE,
        array_shape("s32", (1,)),
        [table, number],
        attributes={"dynamic_slice_sizes": "{1}"},
    )
    return _reshape(found, ())


def _reshape(array: Instruction, dimensions: tuple[int, ...]) -> Instruction:
    shape = array_shape(array.shape.type_name, dimensions)
    if dimensions == array.shape.dimensions and without_layout(array.shape) is shape:
        return array
    return array.parent.add(Opcode.RESHAPE, shape, [array])


def _slices(dimensions: Sequence[int], stride: int) -> str:
    """Every `stride`-th element along the first dimension, all of the others."""
    rows, *others = dimensions
    parts = [f"[0:{rows}:{stride}]", *(f"[0:{n}]" for n in others)]
    return f"{{{', '.join(parts)}}}"
