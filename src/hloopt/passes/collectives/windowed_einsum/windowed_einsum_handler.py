"""Loops over the shards of one dot, in one trip, and dots in parts beside an all-to-all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloopt.analysis.replication.groups import GroupReplication
from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import dimensions_of
from hloopt.ir.clone import clone_to_change
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.devices.collective_devices import device_groups
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.collectives.collective_pipeliner.copies import Copier, discard
from hloopt.passes.collectives.windowed_einsum import dequantization, exchanges, loops
from hloopt.passes.collectives.windowed_einsum.dequantization import Dequantized
from hloopt.passes.collectives.windowed_einsum.gathering import (
    Collector,
    gathers_of,
    read_instead,
)
from hloopt.passes.collectives.windowed_einsum.loops import WindowedLoop, counter_of
from hloopt.passes.collectives.windowed_einsum.partial_results import reduce_behind
from hloopt.passes.collectives.windowed_einsum.unrolling import give_queues, unroll
from hloopt.passes.simplification.algsimp.algebraic_simplifier import AlgebraicSimplifier
from hloopt.passes.simplification.algsimp.options import AlgsimpOptions
from hloopt.passes.simplification.constant_folding import ConstantFolding


@register(
    "windowed-einsum-handler",
    preserves="finite",
    xla=XlaPass(
        "gpu::WindowedEinsumHandler",
        "xla/backends/gpu/transforms/windowed_einsum_handler.h",
    ),
)
class WindowedEinsumHandler(ModulePass):
    """Let the dots of loops over shards overlap the permutes between them, and all-to-alls theirs.

    XLA's partitioner makes a loop of a dot whose operand or result is cut over devices: a body
    whose name begins with `windowed_dot_general_body_ag` hands the shards of an operand around,
    one with `_rs` partial results. Such a loop with two dots or more and a counted number of trips
    does them all in one trip, in which each dot has a queue of its own (`operation_queue_id`) and
    the permute of what is handed around is to start early. Before that the module is simplified,
    by algsimp and constant-folding. Narrow operands (f8) that are dequantized for the loop are
    handed around narrow; where a dot behind the loop reads an all-gather of the operand that the
    loop hands around, the loop collects it; partial results of dots that it adds up are added up
    behind it. What XLA takes for granted is proved: which shards a loop has, by following them
    from device to device; that its sum begins with 0; that a scale is the same on all devices,
    unless `assume_equal_scales` says so. XLA 0.10.2 gives what reads the counter the number of the
    trip, wrong where it grows by 2, and starts no permute of partial results early.
    O(module), and for each loop O(devices · trips · instructions of the body); for each dot that
    reads an all-gather of its operand, what comes before that dot.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        xla_gpu_experimental_enable_alltoall_windowed_einsum: bool = option(
            False, "split dots beside an all-to-all along what they contract"
        )
        assume_equal_scales: bool = option(
            False, "take the scales of narrow operands as equal on all devices, as XLA does"
        )
        max_instructions: int = option(
            1_000_000, "leave a loop alone whose body would get more instructions"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        grid = device_counts(module)
        replication = GroupReplication(module, grid)
        first_queue = next(unused_channel_ids(module))
        taken = [each for each in loops.windowed_loops(module) if self._takes(each, context)]
        for windowed in taken:
            self._widen_inside(windowed, grid, replication, context)
        changed = bool(taken)
        if self.options.xla_gpu_experimental_enable_alltoall_windowed_einsum:
            changed |= _split_exchanges(module, grid, context)
        self._finish(module, taken, first_queue, context)
        if changed:
            repair_schedule(module.computations.values())
        return changed

    def _takes(self, windowed: WindowedLoop, context: PassContext) -> bool:
        loop = windowed.loop
        if reason := loops.why_not(loop, self.options.max_instructions):
            context.missed(loop, reason)
            return False
        counter = counter_of(loop)
        assert not isinstance(counter, str)
        return context.apply(loop, f"does the work of {counted(counter.trips, 'trip')} in one")

    def _widen_inside(
        self,
        windowed: WindowedLoop,
        grid: Grid,
        replication: GroupReplication,
        context: PassContext,
    ) -> None:
        """Let a loop take narrow operands, and collect what all-gathers give."""
        loop = windowed.loop
        if any(len(called.callers) > 1 for called in loop.called):
            body, condition = map(clone_to_change, loop.called)
            loop.set_called((body, condition))
        (init,) = loop.operands
        operand = init.operands[0] if init.opcode is Opcode.TUPLE else None
        operands = dequantization.operands_of(loop)
        if operands:
            reason = dequantization.why_not(
                windowed,
                operands,
                replication,
                assume_equal_scales=self.options.assume_equal_scales,
            )
            if reason is None:
                context.applied(loop, "dequantizes its operands inside")
                context.count("loops with narrow operands")
                dequantization.dequantize_inside(windowed, operands)
            else:
                context.missed(loop, f"its operands are dequantized in front: {reason}")
                operands = []
        if windowed.gathers and operand is not None:
            narrow = operands[0] if operands else None
            self._collect(loop, operand, narrow, grid, context)
        discard([each.value for each in operands])

    def _collect(
        self,
        loop: Instruction,
        operand: Instruction,
        narrow: Dequantized | None,
        grid: Grid,
        context: PassContext,
    ) -> None:
        """Let a loop collect what all-gathers of its operand give to dots behind it."""
        counter = counter_of(loop)
        assert not isinstance(counter, str)
        collector = Collector(loop, counter, grid)
        elements: dict[tuple[object, ...], int] = {}
        for gathered, dots in gathers_of(operand, loop).items():
            if reason := collector.why_not(gathered):
                context.missed(gathered, f"%{loop.name} does not collect it: {reason}")
                continue
            key = (dimensions_of(gathered), tuple(device_groups(gathered, grid)))
            if key not in elements:
                elements[key] = collector.collect(gathered)
            context.applied(gathered, f"%{loop.name} collects it for {counted(len(dots), 'dot')}")
            context.count("all-gathers collected by loops")
            read_instead(loop, elements[key], gathered, dots, narrow)

    def _finish(
        self,
        module: Module,
        taken: Sequence[WindowedLoop],
        first_queue: int,
        context: PassContext,
    ) -> None:
        """Simplify the module, and let each loop do its trips in one."""
        silent = PassContext(wants_remarks=False)
        if taken:
            AlgebraicSimplifier(AlgsimpOptions(run_to_fixed_point=False)).run(module, silent)
            ConstantFolding().run(module, silent)
        copier = Copier(module, unique_channel_id=True)
        for windowed in taken:
            loop = windowed.loop
            counter = counter_of(loop) if loop in loop.parent else "nothing reads it"
            if isinstance(counter, str):
                continue
            context.count("loops unrolled")
            unroll(loop, counter, copier)
            give_queues(windowed, first_queue)
            reduced = reduce_behind(loop) if windowed.gathers else False
            if isinstance(reduced, str):
                context.missed(loop, f"its dots are added up one after another: {reduced}")
            elif reduced:
                context.applied(loop, "its dots are added up behind it")
                context.count("sums behind loops")


def _split_exchanges(module: Module, grid: Grid, context: PassContext) -> bool:
    """Split dots beside an all-to-all, and that, into parts."""
    changed = False
    channels = unused_channel_ids(module)
    for computation in list(module.computations_with(Opcode.ALL_TO_ALL)):
        if computation.is_fusion or computation.is_asynchronous:
            continue
        for pair in exchanges.exchanged_dots(computation):
            if reason := exchanges.why_not(pair, grid):
                context.missed(pair.exchange, f"stays beside %{pair.dot.name}: {reason}")
            elif context.apply(pair.exchange, f"split together with %{pair.dot.name}"):
                context.count("all-to-alls split")
                exchanges.split(pair, grid, channels)
                changed = True
    return changed
