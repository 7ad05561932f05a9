"""Take back the decisions of a backend."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hloopt.ir.module import Module
from hloopt.ir.shapes.entry_layout import format_entry_layout, parse_entry_layout
from hloopt.ir.shapes.shape import without_packing
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.pass_framework.options import make_options
from hloopt.passes.despecialization.assume_gather_indices_in_bound import (
    AssumeGatherIndicesInBoundRewriteToCopy,
)
from hloopt.passes.despecialization.defuser import Defuser
from hloopt.passes.despecialization.reduce_window_to_reduce_and_broadcast import (
    ReduceWindowToReduceAndBroadcast,
)
from hloopt.passes.precision.float_normalization import FloatNormalization
from hloopt.passes.scheduling.memory_scheduler import Descheduler

_MIXED = {"float_support": {"operand": True, "output": True, "mixed": False}}
"""A backend that can do all in bf16, but for operands of different precisions."""


@register(
    "despecializer",
    preserves="precision",
    xla=XlaPass("Despecializer", "xla/hlo/transforms/despecializer.h", compared="tests"),
)
class Despecializer(ModulePass):
    """Drop schedule, control dependencies, fusions, mixed precision and packing of small types.

    One after the other, for comparisons of what different backends make of one module: parts of
    each pass of its own are counted as its. Linear in the size of the result.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        deconstruct_reduce_window_to_reduce_broadcast: bool = option(
            False, "reduce once where windows see a whole dimension"
        )
        assume_gather_indices_in_bound_rewrite_to_copy: bool = option(
            False, "make copies of what promises that indices are in bounds"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        Descheduler().run(module, context)
        _drop_control_dependencies(module, context)
        for each in self._passes():
            each.run(module, context)
        _unpack(module, context)
        return module.version != before

    def _passes(self) -> Iterator[ModulePass]:
        yield Defuser()
        yield FloatNormalization(make_options(FloatNormalization, _MIXED))
        if self.options.assume_gather_indices_in_bound_rewrite_to_copy:
            yield AssumeGatherIndicesInBoundRewriteToCopy()
        if self.options.deconstruct_reduce_window_to_reduce_broadcast:
            yield ReduceWindowToReduceAndBroadcast()


def _drop_control_dependencies(module: Module, context: PassContext) -> None:
    for instruction in module.instructions():
        if instruction.control_predecessors:
            if not context.apply(instruction, "its control dependencies are dropped"):
                break
            context.count("instructions without control dependencies")
            for predecessor in list(instruction.control_predecessors):
                instruction.remove_control_predecessor(predecessor)


def _unpack(module: Module, context: PassContext) -> None:
    """Let each element take whole bytes, in all layouts at once."""
    packed = [i for i in module.instructions() if without_packing(i.shape) is not i.shape]
    if not packed or not context.apply(packed[0], "elements take whole bytes, here and elsewhere"):
        return
    context.count("layouts unpacked", len(packed))
    for instruction in packed:
        instruction.set_shape(without_packing(instruction.shape))
    stated = module.attributes.get("entry_computation_layout")
    if stated:
        parameters, result = parse_entry_layout(stated)
        text = format_entry_layout([*map(without_packing, parameters)], without_packing(result))
        module.set_attribute("entry_computation_layout", text)
