"""The combiners of all-gathers, all-reduces and reduce-scatters."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from hloopt.analysis.calls import loops_with_body
from hloopt.diagnostics import counted
from hloopt.ir.attributes.backend_config import (
    is_pipelined,
    with_collective_flag,
    with_gpu_fields,
)
from hloopt.ir.attributes.frontend_attributes import frontend_attribute
from hloopt.ir.attributes.scheduling_annotations import GROUP
from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.computation import Computation
from hloopt.ir.devices.collective_mode import participants_key
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, repair_schedule, stable_order
from hloopt.ir.reduction_kind import reduction_kind
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
from hloopt.passes.collectives.collective_combiner.combination import combine
from hloopt.passes.collectives.collective_combiner.domains import domain_numbers
from hloopt.passes.collectives.collective_combiner.grouping import Group, Limits, group

DEFAULT_THRESHOLD = 30 * 1024 * 1024 + 7
"""Bytes: what XLA:GPU allows a combined collective, asked with results of 30 MiB + 4 and + 8."""
DEFAULT_COUNT = 256
_BYTES = option(DEFAULT_THRESHOLD, "most bytes of results in a combined collective")
_COUNT = option(DEFAULT_COUNT, "most collectives in a combined one")
_LOOPS = option(True, "also combine in the bodies of while loops")
_BY_DIM = option(
    False, "combine only what has one dimension; else bitcasts swap it with the most frequent one"
)


class _Combiner(ModulePass):
    """Base of the combiners: it forms the groups and reports on them."""

    opcode: ClassVar[Opcode]

    options: Any

    def run(self, module: Module, context: PassContext) -> bool:
        by_computation = self.candidates(module, context)
        before = module.version
        for computation, collectives in by_computation.items():
            if not self.options.combine_while_loops and loops_with_body(computation):
                for collective in collectives:
                    context.missed(collective, "it is in a loop's body, combine_while_loops is off")
                continue
            version = computation.version
            for found in self.groups(computation, collectives, context):
                self._combine(found, context)
            if computation.version != version:
                repair_schedule([computation])
        return module.version != before

    def candidates(
        self, module: Module, context: PassContext
    ) -> dict[Computation, list[Instruction]]:
        """The collectives of each computation; none at all where one constrains its layout."""
        found = list(module.instructions(self.opcode))
        by_computation: dict[Computation, list[Instruction]] = {}
        if any(constrains_layout(i) for i in found):
            for collective in found:
                context.missed(collective, f"an {self.opcode} of the module constrains its layout")
            return by_computation
        for collective in found:
            by_computation.setdefault(collective.parent, []).append(collective)
        return by_computation

    def groups(
        self, computation: Computation, collectives: list[Instruction], context: PassContext
    ) -> Iterator[Group]:
        """Yield what can become one, of some collectives of a computation; some groups have one
        member.

        Each group can be combined before the next is asked for. O(edges) per kind of collective
        that there are at least two of.
        """
        kinds: dict[Hashable, dict[Instruction, int]] = {}
        domains = domain_numbers(computation)
        for collective in collectives:
            if reason := self.why_not(collective):
                context.missed(collective, reason)
            else:
                kind = self.kind(collective), domains.get(collective)
                sizes = kinds.setdefault(kind, {})
                sizes[collective] = shape_bytes(collective.shape)
        in_order = stable_order if computation.module.is_scheduled else post_order
        limits = Limits(
            self.options.combine_threshold_in_bytes, self.options.combine_threshold_count
        )
        for sizes in kinds.values():
            if len(sizes) == 1:
                (only,) = sizes
                context.missed(
                    only, f"no other {self.opcode} of its computation agrees with it in all else"
                )
                continue
            yield from group(in_order(computation), sizes, limits)

    def _combine(self, found: Group, context: PassContext) -> None:
        if len(found.members) < 2:
            for collective in found.members:
                context.missed(collective, found.why_alone)
            return
        what = f"combined with {counted(len(found.members) - 1, 'other')}"
        if not context.apply(found.members[0], what, remark=False):
            return
        combined = combine(found.members)
        self.configure(combined, found.members[0])
        for collective in found.members:
            context.applied(
                collective,
                f"one of {len(found.members)} combined into %{combined.name}, "
                f"{counted(found.byte_count, 'byte')}",
            )
        context.count(f"{self.opcode}s combined", len(found.members))
        context.count(f"combined {self.opcode}s made")

    def why_not(self, collective: Instruction) -> str | None:
        """The reason why a collective is not combined with any other; None where it could be."""
        if len(collective.operands) != 1 or collective.shape.is_tuple:
            return f"it has {counted(len(collective.operands), 'operand')} already"
        if collective.has_control_dependencies:
            return "it has control dependencies"
        if frontend_attribute(collective, GROUP) is not None:
            return f"it has {GROUP}, so its place among others is fixed"
        size, limit = shape_bytes(collective.shape), self.options.combine_threshold_in_bytes
        if size > limit:
            return (
                f"it has {counted(size, 'byte')} alone, and combine_threshold_in_bytes is {limit:,}"
            )
        return None

    def kind(self, collective: Instruction) -> tuple[Hashable, ...]:
        """The key that collectives must share to be combined."""
        return (
            participants_key(collective),
            frontend_attribute(collective, "collective_group_key"),
        )

    def configure(self, combined: Instruction, first: Instruction) -> None:
        """Give the combined collective its backend_config; `first` is one that it is made of."""

    def dimension_kind(self, collective: Instruction) -> str | None:
        """The dimension where it has to be the same, else None."""
        return collective.attributes["dimensions"] if self.options.combine_by_dim else None


class _OnGpu(_Combiner):
    """Base of the combiners that know the backend_config of XLA:GPU."""

    def kind(self, collective: Instruction) -> tuple[Hashable, ...]:
        return *super().kind(collective), is_pipelined(collective)

    def configure(self, combined: Instruction, first: Instruction) -> None:
        """Write the defaults, and is_pipelined where it is so."""
        combined.set_attribute("backend_config", None)
        if is_pipelined(first):
            text = with_collective_flag(combined, "is_pipelined")
        else:
            text = with_gpu_fields(combined)
        combined.set_attribute("backend_config", text)


def _why_no_reduction(collective: Instruction) -> str | None:
    if reduction_kind(collective.called[0]) is None:
        return f"%{collective.called[0].name} is not a sum, product, minimum or maximum"
    return None


def _reduction(collective: Instruction) -> tuple[Hashable, ...]:
    computation = collective.called[0]
    return reduction_kind(computation), computation.root.shape


@register(
    "all-gather-combiner",
    preserves="bits",
    xla=XlaPass("AllGatherCombiner", "xla/hlo/transforms/collectives/all_gather_combiner.h"),
)
class AllGatherCombiner(_Combiner):
    """Combine all-gathers of one computation into one with several operands.

    They agree in replica groups (as devices, however written), in what the groups stand for, and
    in the frontend attribute `collective_group_key`, and no domain separates them; shardings may
    differ. In XLA's order of the
    computation each group takes what follows until it would exceed a threshold or until the next
    depends on it. An all-gather with control dependencies, or of more bytes than the threshold,
    stays. Where dimensions differ, bitcasts let all of a group gather in the most frequent one.
    O(edges) per kind of all-gather.

    As XLA:GPU 0.10.2 does it on generated modules, but for one in 1,500, where it goes on with
    another kind before it is done with one. That version also combines across scheduling groups,
    `collective_group_key` and control dependencies, which newer ones do not.
    """

    opcode = Opcode.ALL_GATHER

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        combine_threshold_in_bytes: Bytes = _BYTES
        combine_threshold_count: int = _COUNT
        combine_by_dim: bool = _BY_DIM
        combine_different_dtypes: bool = option(
            True, "let element types differ within a combined all-gather"
        )
        combine_while_loops: bool = _LOOPS

    def kind(self, collective: Instruction) -> tuple[Hashable, ...]:
        by_type = not self.options.combine_different_dtypes
        return (
            *super().kind(collective),
            self.dimension_kind(collective),
            collective.shape.type_name if by_type else None,
        )


@register(
    "all-reduce-combiner",
    preserves="bits",
    xla=XlaPass("AllReduceCombiner", "xla/hlo/transforms/collectives/all_reduce_combiner.h"),
)
class AllReduceCombiner(_Combiner):
    """Combine all-reduces of one computation into one with several operands.

    They agree in all that all-gather-combiner asks for, and in reduction (sum, product, minimum,
    maximum) and element type; with any other reduction they stay. O(edges) per kind.
    """

    opcode = Opcode.ALL_REDUCE

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        combine_threshold_in_bytes: Bytes = _BYTES
        combine_threshold_count: int = _COUNT
        combine_while_loops: bool = _LOOPS

    def why_not(self, collective: Instruction) -> str | None:
        return super().why_not(collective) or _why_no_reduction(collective)

    def kind(self, collective: Instruction) -> tuple[Hashable, ...]:
        return *super().kind(collective), *_reduction(collective)


@register(
    "reduce-scatter-combiner",
    preserves="bits",
    xla=XlaPass(
        "ReduceScatterCombiner", "xla/hlo/transforms/collectives/reduce_scatter_combiner.h"
    ),
)
class ReduceScatterCombiner(_Combiner):
    """Combine reduce-scatters of one computation into one with several operands.

    They agree in all that all-reduce-combiner asks for; dimensions are brought together as in
    all-gather-combiner. The thresholds are about results. O(edges) per kind.
    """

    opcode = Opcode.REDUCE_SCATTER

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        combine_threshold_in_bytes: Bytes = _BYTES
        combine_threshold_count: int = _COUNT
        combine_by_dim: bool = _BY_DIM
        combine_while_loops: bool = _LOOPS

    def why_not(self, collective: Instruction) -> str | None:
        return super().why_not(collective) or _why_no_reduction(collective)

    def kind(self, collective: Instruction) -> tuple[Hashable, ...]:
        return (
            *super().kind(collective),
            *_reduction(collective),
            self.dimension_kind(collective),
        )


@register(
    "gpu-all-gather-combiner",
    preserves="bits",
    xla=XlaPass(
        "gpu::GpuAllGatherCombiner", "xla/backends/gpu/transforms/collectives/all_gather_combiner.h"
    ),
)
class GpuAllGatherCombiner(_OnGpu, AllGatherCombiner):
    """all-gather-combiner as XLA:GPU runs it after fusion.

    What a pipeliner has marked (`is_pipelined` in the backend_config) is combined apart from the
    rest, so that it stays hidden; the combined one has a backend_config that says so, and
    XLA:GPU's defaults in all else. XLA:GPU's search for a larger threshold by free memory was off
    in all that its compiler was asked, and is not done here: give the thresholds.
    """


@register(
    "gpu-all-reduce-combiner",
    preserves="bits",
    xla=XlaPass(
        "gpu::GpuAllReduceCombiner", "xla/backends/gpu/transforms/collectives/all_reduce_combiner.h"
    ),
)
class GpuAllReduceCombiner(_OnGpu, AllReduceCombiner):
    """all-reduce-combiner as XLA:GPU runs it after fusion: see gpu-all-gather-combiner."""


@register(
    "gpu-reduce-scatter-combiner",
    preserves="bits",
    xla=XlaPass(
        "gpu::GpuReduceScatterCombiner",
        "xla/backends/gpu/transforms/collectives/reduce_scatter_combiner.h",
    ),
)
class GpuReduceScatterCombiner(_OnGpu, ReduceScatterCombiner):
    """reduce-scatter-combiner as XLA:GPU runs it after fusion: see gpu-all-gather-combiner."""
