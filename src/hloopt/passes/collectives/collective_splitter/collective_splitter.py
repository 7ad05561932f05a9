"""Collectives in parts along a dimension, with what makes and what uses their values."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.diagnostics import PipelineError, counted
from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.computation import Computation
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.ordering import stable_order
from hloopt.pass_framework.base import ModulePass, PassContext, PassOptions, option, register
from hloopt.passes.collectives.collective_splitter.dimensions import PLAIN
from hloopt.passes.collectives.collective_splitter.region import Region
from hloopt.passes.collectives.collective_splitter.rewrite import split_region
from hloopt.passes.rewriting.selection import selected


@register("collective-splitter", preserves="rounding")
class CollectiveSplitter(ModulePass):
    """Cut collectives along a dimension into parts, with what makes and what uses their values.

    While one part is sent, the next is computed, and the part before it used. A collective is cut
    along a dimension that it leaves alone: one that the number of parts divides, along which most
    of what stands around it can work on parts, the most major of those by the layout. Before it
    these are operations up to a dot, cut along a dimension that is not contracted; after it
    operations, other collectives that are named among them, as far as they keep the dimension.
    Fusions are cut with all that is in them. Values from outside are sliced, and parts are
    concatenated where something needs the whole. As many bytes are sent, and each element is
    computed as before, but for the order in which dots add. XLA has no such pass.
    O(instructions), also of fused computations, times dimensions, beside what is added.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        names: tuple[str, ...] = option((), "names of the collectives to cut; none: all")
        parts: int = option(2, "how many parts each becomes")
        reach: int | None = option(
            None,
            "how many dots in a row work on parts, on each side of a collective; null: one before "
            "it, any number after it",
        )

        def __post_init__(self) -> None:
            if self.parts < 2 or (self.reach is not None and self.reach < 1):
                raise PipelineError("collective-splitter needs 2 parts and a reach of 1 at least")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        found: dict[Computation, list[Instruction]] = {}
        every = [
            instruction
            for computation in module.computations.values()
            if not computation.is_fusion
            for instruction in computation.instructions
            if instruction.opcode in PLAIN
        ]
        for collective in selected(every, self.options.names, "collective", context):
            if reason := why_not(collective):
                context.missed(collective, reason)
            else:
                found.setdefault(collective.parent, []).append(collective)
        channel_ids = unused_channel_ids(module)
        changed = False
        for computation, collectives in found.items():
            region = self._region(computation, set(collectives), context)
            if region.members:
                split_region(region, channel_ids)
                changed = True
        return changed

    def _region(
        self, computation: Computation, collectives: set[Instruction], context: PassContext
    ) -> Region:
        region = Region(computation, self.options.parts, self.options.reach)
        parts = counted(self.options.parts, "part")
        for instruction in stable_order(computation):
            if instruction in collectives:
                dimension = region.dimension_for(instruction)
                if dimension is None:
                    context.missed(
                        instruction, f"nothing beside it can work on {parts} of what it sends"
                    )
                elif context.apply(instruction, f"{parts} along dimension {dimension}"):
                    context.count("collectives split")
                    region.add_collective(instruction, dimension)
            elif any(operand in region.members for operand in instruction.operands):
                region.add_user(instruction)
        return region


def why_not(collective: Instruction) -> str | None:
    """The reason why a collective stays whole, whatever stands beside it; None without one."""
    if len(collective.operands) != 1 or not collective.shape.is_array:
        return f"it has {counted(len(collective.operands), 'operand')} and gives a tuple"
    if collective.parent.is_asynchronous:
        return "it is wrapped by an async-start"
    if collective.has_control_dependencies:
        return "it has control dependencies"
    if constrains_layout(collective):
        return "it constrains its layout"
    return None
