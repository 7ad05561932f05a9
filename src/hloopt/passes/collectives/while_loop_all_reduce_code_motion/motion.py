"""Move all-reduces out of loops that only accumulate or store their results."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.device_values import DeviceValues
from hloopt.analysis.replication.groups import GroupReplication
from hloopt.diagnostics import counted
from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.attributes.values.replica_groups import MOST_DEVICES
from hloopt.ir.computation import Computation
from hloopt.ir.devices.channels import unused_channel_ids
from hloopt.ir.devices.collective_mode import replica_groups
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import computation_post_order, post_order, repair_schedule
from hloopt.pass_framework.base import (
    Bytes,
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.accumulation import (
    Accumulation,
    find_accumulations,
)
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.loops import (
    NotMovable,
    SharedBody,
    shared_body,
)
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.rewrite import move_out
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.scattering import find_scattering
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.storage import (
    Storage,
    find_storage,
)


class _DeviceFacts:
    """Facts about the devices of a module, computed when they are asked for."""

    def __init__(self, module: Module) -> None:
        self.grid = device_counts(module)
        self.values = DeviceValues(self.grid)
        self.replication = GroupReplication(
            module,
            self.grid,
            presume_functions=self.grid != (module.replica_count, module.num_partitions),
        )


@register(
    "while-loop-all-reduce-code-motion",
    preserves="rounding",
    xla=XlaPass(
        "WhileLoopAllReduceCodeMotion",
        "xla/hlo/transforms/collectives/while_loop_all_reduce_code_motion.h",
    ),
)
class WhileLoopAllReduceCodeMotion(ModulePass):
    """Run an all-reduce once after a while loop instead of in every trip.

    That is possible where the loop only accumulates its results (`sum += all-reduce(x)`, also in
    a slice of the state, in another precision, scaled by a scalar all-reduce, or zeroed by a
    select), or only stores them, each trip at a place of its own, as a scan does. The loop then
    sums, or stores, what its own device has, and the all-reduce takes that. Inner loops are
    finished first, so that a collective can leave several. Where one device of each group
    scatters into the sum and the others into zeros, before the all-reduce, all of them scatter into
    sums of their own.

    A sum in floating point is rounded in another order, and in the precision of the state. What
    is refused though XLA moves it would compute something else: results that a select with a
    device's own predicate zeroes, integers widened behind the all-reduce, a state that is
    transposed in every trip, results stored along a diagonal, or at a place that moves in a value
    that each trip makes anew, an all-reduce of a scatter into a state that all devices have.
    Unlike in XLA, what is summed over replicas gets no channel, which would sum it over
    partitions, too; the zeros that devices scatter into do not stay in the loop, where they would
    wipe out the trips before; and collectives with control dependencies stay. XLA:GPU 0.10.2 moves
    sums out of one loop only. A module of several partitions is taken to be SPMD. Where the
    header names fewer devices than the groups, XLA takes every select and index to be the same on
    all: here what depends on the device, or on arrays that each device has for itself, is not.
    Linear in the size of loop bodies, and one
    replication analysis along each axis where there are selects or indices.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        enable_reduce_scatter: bool = option(False, "also move reduce-scatters that are summed")
        run_setup_passes: bool = option(
            False, "first run reorder-reduce-transpose and reorder-convert-reduce-add"
        )
        xla_while_loop_all_reduce_dus_code_motion_max_size_bytes: Bytes = option(
            10240, "largest size of all results that a loop stores, in bytes"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        facts = _DeviceFacts(module)
        if self.options.run_setup_passes:
            self._prepare(module, context)
        channel_ids = unused_channel_ids(module)
        for computation in computation_post_order(module):
            collectives = self._collectives(computation)
            if not collectives:
                continue
            body = shared_body(computation)
            if not isinstance(body, SharedBody):
                for collective in collectives if body is not None else ():
                    context.missed(collective, str(body))
                continue
            storages, accumulations = self._movable(collectives, body, facts, context)
            if storages or accumulations:
                move_out(body, storages, accumulations, channel_ids)
                repair_schedule((computation, *{loop.parent for loop in body.loops}))
        return module.version != before

    def _prepare(self, module: Module, context: PassContext) -> None:
        from hloopt.passes.simplification.reorder_convert_reduce_add import ReorderConvertReduceAdd
        from hloopt.passes.simplification.reorder_reduce_transpose import ReorderReduceTranspose

        quiet = PassContext(
            context.pass_name, wants_remarks=False, applications=context.applications
        )
        ReorderReduceTranspose().run(module, quiet)
        options = ReorderConvertReduceAdd.Options(
            enable_reduce_scatter=self.options.enable_reduce_scatter
        )
        ReorderConvertReduceAdd(options).run(module, quiet)

    def _collectives(self, computation: Computation) -> list[Instruction]:
        wanted = {Opcode.ALL_REDUCE}
        if self.options.enable_reduce_scatter:
            wanted.add(Opcode.REDUCE_SCATTER)
        if not any(instruction.opcode in wanted for instruction in computation.instructions):
            return []
        return [
            instruction for instruction in post_order(computation) if instruction.opcode in wanted
        ]

    def _movable(
        self,
        collectives: list[Instruction],
        body: SharedBody,
        facts: _DeviceFacts,
        context: PassContext,
    ) -> tuple[list[Storage], list[Accumulation]]:
        storages: list[Storage] = []
        accumulations: list[Accumulation] = []
        loops = " and ".join(f"%{loop.name}" for loop in body.loops)
        for collective in collectives:
            try:
                way_out = self._way_out(collective, body, facts)
            except NotMovable as reason:
                context.missed(collective, str(reason))
                continue
            is_stored = isinstance(way_out, Storage)
            does = "stores" if is_stored else "adds up"
            if not context.apply(collective, f"moved behind {loops}, which {does} its results"):
                break
            if isinstance(way_out, Storage):
                storages.append(way_out)
            else:
                accumulations += way_out
            context.count("collectives moved out of loops")
        return storages, accumulations

    def _way_out(
        self, collective: Instruction, body: SharedBody, facts: _DeviceFacts
    ) -> Storage | list[Accumulation]:
        """The motion by which a collective can leave its loop. Raises NotMovable."""
        _check_form(collective)
        if collective.opcode is Opcode.ALL_REDUCE:
            most = self.options.xla_while_loop_all_reduce_dus_code_motion_max_size_bytes
            storage = find_storage(collective, body, most)
            if storage is not None:
                return storage
            same_in_group = facts.replication.holds
            scattering = find_scattering(collective, body, facts.values, facts.grid, same_in_group)
            if scattering is not None:
                return [scattering]
        return find_accumulations(collective, body, facts.replication.holds)


def _check_form(collective: Instruction) -> None:
    """Raise NotMovable if a collective is none that moves, whatever uses it."""
    if len(collective.operands) != 1 or not collective.shape.is_array:
        raise NotMovable("it reduces several values at once")
    if collective.shape.is_dynamic:
        raise NotMovable("its size is dynamic")
    if constrains_layout(collective):
        raise NotMovable("its layout is constrained")
    if (count := replica_groups(collective).named_count) > MOST_DEVICES:
        raise NotMovable(f"it names {counted(count, 'device')}")
    if collective.has_control_dependencies:
        raise NotMovable("it has control dependencies")
