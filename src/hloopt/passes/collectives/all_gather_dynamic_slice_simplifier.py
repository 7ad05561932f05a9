"""Drop all-gathers of which each device keeps only what it put in."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from hloopt.analysis.device_values import DeviceValues
from hloopt.analysis.side_effects import SideEffects
from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import constrains_layout, dimensions_of
from hloopt.ir.computation import Computation
from hloopt.ir.devices.collective_devices import device_groups
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, repair_schedule
from hloopt.ir.shapes.layout import default_layout
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.rewriting.replace import (
    control_dependencies_can_move,
    replace_instruction,
    shardings_differ,
)
from hloopt.passes.simplification.dce import DeadCode, DeadCodeElimination


@register(
    "all-gather-dynamic-slice-simplifier",
    preserves="bits",
    xla=XlaPass(
        "gpu::AllGatherDynamicSliceSimplifier",
        "xla/backends/gpu/transforms/collectives/all_gather_dynamic_slice_simplifier.h",
    ),
)
class AllGatherDynamicSliceSimplifier(ModulePass):
    """Replace a dynamic-slice of an all-gather by the operand, where each device slices that out.

    The all-gather has uniform groups of two devices or more and one operand; the slice takes one
    dimension apart, the one that was gathered, which a reshape in between leaves as it is. Where
    the slice begins is computed for all devices, so that any way to write it is understood that
    depends on partition-id, replica-id and constants alone. XLA knows fewer. Linear in the module's
    size, and O(devices) for each index of a slice.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        allow_multiple_split_dims: bool = option(
            False, "let a reshape split the gathered dimension, and the slice several of its parts"
        )
        allow_intervening_reshape: bool = option(True, "look through a reshape")
        min_rank: int = option(1, "least rank of the all-gather, dimensions of size 1 not counted")
        allow_intervening_bitcast: bool = option(False, "look through a bitcast that reshapes")
        allow_multiple_users: bool = option(False, "also where something else reads the all-gather")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        grid = device_counts(module)
        values = DeviceValues(grid)
        changed: dict[Computation, None] = {}
        orphans: list[Instruction] = []
        for computation in module.computations_with(Opcode.ALL_GATHER):
            for part in post_order(computation):
                gathered = self._gathered_behind(part)
                if gathered is None:
                    continue
                if reason := self._why_not(gathered, part, grid, values):
                    context.missed(part, reason)
                    continue
                own = gathered.operands[0]
                if not context.apply(part, f"replaced by %{own.name}, the shard of the device"):
                    break
                context.count("slices of all-gathers removed")
                changed[computation] = None
                orphans += part.operands
                if part.shape.dimensions != own.shape.dimensions:
                    own = computation.add(Opcode.RESHAPE, part.shape, [own])
                replace_instruction(part, own)
        if orphans:
            dead = DeadCode(SideEffects(module), DeadCodeElimination.Options(), context.as_part())
            dead.remove_dead(dict.fromkeys(orphans))
        repair_schedule(changed)
        return bool(changed)

    def _gathered_behind(self, part: Instruction) -> Instruction | None:
        """The all-gather that a dynamic-slice takes a part of."""
        if part.opcode is not Opcode.DYNAMIC_SLICE:
            return None
        value = part.operands[0]
        if (value.opcode is Opcode.RESHAPE and self.options.allow_intervening_reshape) or (
            value.opcode is Opcode.BITCAST
            and self.options.allow_intervening_bitcast
            and _is_reshape(value)
        ):
            value = value.operands[0]
        return value if value.opcode is Opcode.ALL_GATHER else None

    def _why_not(
        self, gathered: Instruction, part: Instruction, grid: Grid, values: DeviceValues
    ) -> str | None:
        """The reason why a slice must stay, or None where the operand can take its place."""
        if len(gathered.operands) != 1 or constrains_layout(gathered):
            return f"%{gathered.name} has several operands, or its layout is constrained"
        own = gathered.operands[0]
        rank = sum(size != 1 for size in gathered.shape.dimensions)
        if rank < self.options.min_rank:
            return f"without dimensions of size 1 %{gathered.name} has the rank {rank}"
        if not self.options.allow_multiple_users:
            for value in dict.fromkeys((gathered, part.operands[0])):
                if len(value.users) > 1 or value.is_root:
                    return f"%{value.name} has other users"
        if part.shape.is_dynamic or own.shape.is_dynamic:
            return "its size is dynamic"
        groups = device_groups(gathered, grid)
        sizes = {len(group) for group in groups}
        if len(sizes) != 1 or sizes == {1}:
            return f"%{gathered.name} has groups of different sizes, or of one device"
        if part.shape.dimensions == own.shape.dimensions and part.shape is not own.shape:
            return f"its layout differs from that of %{own.name}"
        if shardings_differ(part, own):
            return f"its sharding differs from that of %{own.name}"
        if not control_dependencies_can_move(part, own):
            return f"a control predecessor of it may depend on %{own.name}"
        return self._why_not_own(gathered, part, groups, values)

    def _why_not_own(
        self,
        gathered: Instruction,
        part: Instruction,
        groups: list[tuple[int, ...]],
        values: DeviceValues,
    ) -> str | None:
        """The reason why a slice is not what each device put in, or None where it is."""
        whole = part.operands[0].shape.dimensions
        cut = [d for d, size in enumerate(part.shape.dimensions) if size != whole[d]]
        if len(cut) != 1 and not (cut and self.options.allow_multiple_split_dims):
            return f"it slices {counted(len(cut), 'dimension')}, not one"
        (dimension,) = dimensions_of(gathered)
        fields = _fields(gathered.shape.dimensions, dimension, whole)
        if fields is None or (len(fields) > 1 and not self.options.allow_multiple_split_dims):
            return f"%{gathered.name} gathers another dimension, or the reshape changes it"
        if not {*cut} <= {*fields} or not _is_one_piece(part.shape.dimensions, whole, fields):
            return f"it slices other dimensions than %{gathered.name} gathers"
        shard = gathered.operands[0].shape.dimensions[dimension]
        if prod(part.shape.dimensions[d] for d in fields) != shard:
            return f"it takes another size than the {shard} of a shard"
        begins = _begins(part, fields, values)
        if begins is None:
            return "where it begins depends on more than the number of the device"
        for group in groups:
            for position, device in enumerate(group):
                if device >= len(begins) or begins[device] != position * shard:
                    return f"device {device} slices out the shard of another"
        return None


def _is_reshape(bitcast: Instruction) -> bool:
    """Whether a bitcast is between arrays of one type in the default layout."""
    a, b = bitcast.shape, bitcast.operands[0].shape
    return (
        a.is_array
        and b.is_array
        and a.type_name == b.type_name
        and all(shape.layout == default_layout(shape.rank) for shape in (a, b))
    )


def _fields(gathered: tuple[int, ...], dimension: int, reshaped: tuple[int, ...]) -> range | None:
    """The dimensions of a reshaped array that the gathered dimension became, if they are just it.

    None where the reshape mixes it with others, or there is nothing in the arrays.
    """
    if 0 in reshaped:
        return None
    before = prod(gathered[:dimension])
    first, product = 0, 1
    while first < len(reshaped) and product < before:
        product *= reshaped[first]
        first += 1
    while first < len(reshaped) and reshaped[first] == 1 != gathered[dimension]:
        first += 1
    if product != before:
        return None
    end, inside = first, 1
    while end < len(reshaped) and inside < gathered[dimension]:
        inside *= reshaped[end]
        end += 1
    return range(first, end) if inside == gathered[dimension] and end > first else None


def _is_one_piece(part: tuple[int, ...], whole: tuple[int, ...], fields: range) -> bool:
    """Whether a part of some dimensions is one run of what they are as one dimension."""
    cut = [d for d in fields if part[d] != whole[d]]
    return all(part[d] == 1 for d in fields if cut and d < cut[-1])


def _begins(part: Instruction, fields: range, values: DeviceValues) -> list[int] | None:
    """Where a slice begins on each device, in the fields as one dimension."""
    whole = part.operands[0].shape.dimensions
    begins: list[int] | None = None
    for d in fields:
        if len(part.operands) != 1 + len(whole):
            return None
        last = whole[d] - part.shape.dimensions[d]
        found = values.of(part.operands[1 + d]) if last else None
        if last and found is None:
            return None
        if found is None:
            begins = None if begins is None else [b * whole[d] for b in begins]
            continue
        offsets = [min(max(offset, 0), last) for offset in found]
        begins = [
            b * whole[d] + offset
            for b, offset in zip(begins or [0] * len(offsets), offsets, strict=True)
        ]
    return begins
