"""All-to-alls of one array, as those of a tuple or of an array with more dimensions."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import constrains_layout, dimensions_of
from hloopt.ir.attributes.values import Slice, format_ints
from hloopt.ir.computation import Computation
from hloopt.ir.devices.collective_devices import group_sizes
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.ir.tuples import read_element
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.collectives.shards import with_dimension
from hloopt.passes.rewriting.replace import OF_THE_VALUE, replace_instruction
from hloopt.passes.rewriting.rules import Builder


@register(
    "all-to-all-decomposer",
    preserves="bits",
    xla=XlaPass("AllToAllDecomposer", "xla/service/all_to_all_decomposer.h"),
)
class AllToAllDecomposer(ModulePass):
    """Slice the operand of an all-to-all, exchange the slices as a tuple, and join what comes.

    With `decompose_to_tuple` false, an array of a rank below `min_array_rank` is reshaped instead,
    so that the number of devices in a group is a dimension of its own, with dimensions of size 1
    behind, exchanged along that dimension, and reshaped back. Layouts that are constrained stay,
    and so do fusions' insides. Linear in the size of the result.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        decompose_to_tuple: bool = option(True, "exchange a tuple of slices")
        min_array_rank: int = option(0, "least rank of arrays that are exchanged as they are")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        grid = Grid(module.replica_count, module.num_partitions)
        touched: dict[Computation, None] = {}
        for exchange in list(module.instructions(Opcode.ALL_TO_ALL)):
            if not exchange.shape.is_array or exchange.parent.is_fusion:
                continue
            as_tuple = self.options.decompose_to_tuple
            if not as_tuple and exchange.shape.rank >= self.options.min_array_rank:
                continue
            sizes = group_sizes(exchange, grid)
            if reason := _why_not(exchange, sizes):
                context.missed(exchange, reason)
                continue
            (count,) = sizes
            what = f"exchanges {counted(count, 'slice')}" if as_tuple else "has more dimensions"
            if not context.apply(exchange, what):
                break
            context.count("all-to-alls decomposed")
            touched[exchange.parent] = None
            if as_tuple:
                _exchange_slices(exchange, count)
            else:
                _exchange_wide(exchange, count, self.options.min_array_rank)
        repair_schedule(touched)
        return bool(touched)


def _why_not(exchange: Instruction, sizes: set[int]) -> str | None:
    """The reason why an all-to-all must stay as it is, or None."""
    if exchange.parent.is_asynchronous:
        return "it is wrapped by an async-start"
    if constrains_layout(exchange):
        return "its layout is constrained"
    if exchange.shape.is_dynamic or exchange.operands[0].shape.is_dynamic:
        return "its size is dynamic"
    if len(sizes) != 1:
        return "its groups have different sizes"
    (dimension,) = dimensions_of(exchange)
    size, (count,) = exchange.shape.dimensions[dimension], sizes
    if size % count:
        return f"{size} cannot be split for {counted(count, 'device')}"
    return None


def _exchange_slices(exchange: Instruction, count: int) -> None:
    parent, (operand,) = exchange.parent, exchange.operands
    (dimension,) = dimensions_of(exchange)
    shape = operand.shape
    size = shape.dimensions[dimension] // count
    build = Builder(parent)
    slices = []
    for n in range(count):
        limits = [Slice(0, limit, 1) for limit in shape.dimensions]
        limits[dimension] = Slice(n * size, (n + 1) * size, 1)
        piece = build.slice(operand, limits, with_dimension(shape, dimension, size))
        slices.append(_derived(exchange, piece))
    exchanged = parent.add_clone(exchange, slices, name=Opcode.ALL_TO_ALL.value)
    exchanged.set_shape(tuple_shape(piece.shape for piece in slices))
    for name in ("dimensions", *OF_THE_VALUE):
        if name in exchanged.attributes:
            exchanged.set_attribute(name, None)
    pieces = [read_element(exchanged, n) for n in range(count)]
    exchange.move_control_dependencies_to(exchanged)
    joined = build.concatenate(pieces, dimension, exchange.shape)
    replace_instruction(exchange, _derived(exchange, joined))


def _exchange_wide(exchange: Instruction, count: int, rank: int) -> None:
    (dimension,) = dimensions_of(exchange)
    sizes = list(exchange.operands[0].shape.dimensions)
    sizes[dimension : dimension + 1] = [count, sizes[dimension] // count]
    sizes += [1] * (rank - len(sizes))
    build = Builder(exchange.parent)
    wide = build.reshape(exchange.operands[0], sizes)
    exchanged = exchange.parent.add_clone(exchange, [wide], name=Opcode.ALL_TO_ALL.value)
    exchanged.set_shape(wide.shape)
    exchanged.set_attribute("dimensions", format_ints((dimension,)))
    for name in OF_THE_VALUE:
        if name in exchanged.attributes:
            exchanged.set_attribute(name, None)
    exchange.move_control_dependencies_to(exchanged)
    replace_instruction(exchange, build.reshape(exchanged, exchange.shape))


def _derived(old: Instruction, new: Instruction) -> Instruction:
    """`new` with the annotations of the instruction that it is made for."""
    for name in ("metadata", "frontend_attributes", "sharding"):
        if name in old.attributes:
            new.set_attribute(name, old.attributes[name])
    return new
