"""Split collectives into a start and a done, so that other work can run in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.analysis.dataflow.forwarding import is_in_place_permute
from hloopt.diagnostics import counted
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import OPCODES, Opcode
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.pass_framework.base import (
    Bytes,
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.async_ops.async_pairs import AsyncPair, done_of, replace_by_pairs, wrap
from hloopt.passes.rewriting.replace import attributes_for_another_value

_OWN_OPCODES = (Opcode.ALL_REDUCE, Opcode.ALL_GATHER, Opcode.COLLECTIVE_PERMUTE)
_SIZED = (Opcode.ALL_REDUCE, Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER)
_KINDS = {
    Opcode.ALL_REDUCE: "convert_all_reduce",
    Opcode.ALL_GATHER: "convert_all_gather",
    Opcode.COLLECTIVE_BROADCAST: "convert_collective_broadcast",
    Opcode.COLLECTIVE_PERMUTE: "convert_collective_permute",
    Opcode.ALL_TO_ALL: "convert_all_to_all",
    Opcode.REDUCE_SCATTER: "convert_reduce_scatter",
    Opcode.RAGGED_ALL_TO_ALL: "convert_ragged_all_to_all",
}


@register(
    "async-collective-creator",
    preserves="bits",
    xla=XlaPass(
        "AsyncCollectiveCreator", "xla/hlo/transforms/collectives/async_collective_creator.h"
    ),
)
class AsyncCollectiveCreator(ModulePass):
    """Turn collectives into pairs of an asynchronous start and a done.

    all-reduce, all-gather and collective-permute become `X-start` and `X-done`; others, or all
    with `use_generic_async_start_done`, an async-start around a computation of their own. In a
    schedule the two take the old place, side by side. Bodies of fusions and of asynchronous starts
    stay as they are. Linear in the module's size.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        convert_all_reduce: bool = option(False, "split all-reduces")
        convert_all_gather: bool = option(False, "split all-gathers")
        convert_collective_broadcast: bool = option(False, "split collective-broadcasts")
        convert_collective_permute: bool = option(False, "split collective-permutes")
        convert_all_to_all: bool = option(False, "split all-to-alls")
        convert_reduce_scatter: bool = option(False, "split reduce-scatters")
        convert_ragged_all_to_all: bool = option(False, "split ragged-all-to-alls")
        all_reduce_min_threshold_in_bytes: Bytes = option(0, "smaller all-reduces stay")
        all_gather_min_threshold_in_bytes: Bytes = option(0, "smaller all-gathers stay")
        reduce_scatter_min_threshold_in_bytes: Bytes = option(0, "smaller reduce-scatters stay")
        should_ignore_size_check: bool | Callable[[Instruction], bool] = option(
            False, "split all-reduces, all-gathers and reduce-scatters of any size"
        )
        use_generic_async_start_done: bool = option(
            False, "use async-start even where there are opcodes of their own"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        for computation in list(module.computations.values()):
            if not (computation.is_fusion or computation.is_asynchronous):
                self._split_all(computation, context)
        return module.version != before

    def _split_all(self, computation: Computation, context: PassContext) -> None:
        pairs: dict[Instruction, AsyncPair] = {}
        for instruction in list(computation.instructions):
            if instruction.opcode not in _KINDS:
                continue
            if reason := self.why_not(instruction):
                context.missed(instruction, reason)
                continue
            if not context.apply(instruction, "split into a start and a done", remark=False):
                break
            start, done = pairs[instruction] = self._split(instruction)
            context.applied(instruction, f"split into %{start.name} and %{done.name}")
            context.count(f"{instruction.opcode}s split")
        replace_by_pairs(computation, pairs)

    def why_not(self, collective: Instruction) -> str | None:
        """The reason why a collective stays in one piece; None where it can be split."""
        opcode = collective.opcode
        if not getattr(self.options, _KINDS[opcode]):
            return f"{_KINDS[opcode]} is off"
        if opcode not in _SIZED:
            return None
        size = sum(map(shape_bytes, collective.shape.leaves()))
        least = getattr(self.options, f"{opcode.replace('-', '_')}_min_threshold_in_bytes")
        ignores = self.options.should_ignore_size_check
        if size >= least or (ignores(collective) if callable(ignores) else ignores):
            return None
        return f"its {counted(size, 'byte is', 'bytes are')} less than {least:,}"

    def _split(self, collective: Instruction) -> AsyncPair:
        opcode = collective.opcode
        if opcode in _OWN_OPCODES and not self.options.use_generic_async_start_done:
            start = _own_start(collective)
            return AsyncPair(start, done_of(collective, start, OPCODES[f"{opcode}-done"]))
        pair = wrap(collective)
        if aliasing := _aliasing(collective):
            pair.start.set_attribute("output_to_operand_aliasing", aliasing)
        return pair


def _own_start(collective: Instruction) -> Instruction:
    shape = _own_start_shape(collective)
    attributes = attributes_for_another_value(collective)
    if shape is collective.shape and "sharding" in collective.attributes:
        attributes["sharding"] = collective.attributes["sharding"]
    return collective.parent.add(
        OPCODES[f"{collective.opcode}-start"],
        shape,
        collective.operands,
        name=f"{collective.opcode}-start",
        attributes=attributes,
        called=collective.called,
    )


def _own_start_shape(collective: Instruction) -> Shape:
    if collective.opcode is Opcode.ALL_REDUCE:
        return collective.shape
    shapes = [operand.shape for operand in collective.operands]
    if is_in_place_permute(collective):
        shapes = shapes[:1]
    operands = shapes[0] if len(shapes) == 1 else tuple_shape(shapes)
    return tuple_shape([operands, collective.shape])


def _aliasing(collective: Instruction) -> str:
    """The results of a wrapped collective that lie where its operands lie."""
    if collective.opcode is Opcode.ALL_REDUCE:
        count = len(collective.operands)
        if count == 1 and not collective.shape.is_tuple:
            return "{{1}: (0, {})}"
        return "{" + ", ".join(f"{{1, {i}}}: ({i}, {{}})" for i in range(count)) + "}"
    return "{{1}: (1, {})}" if is_in_place_permute(collective) else ""
