"""Asynchronous collectives and transfers in one piece again, whatever runs beside them."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.async_operations import OWN_DONES, SEND_RECV
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depends_on
from hloopt.pass_framework.base import ModulePass, PassContext, PassOptions, option, register
from hloopt.passes.async_ops.convert_async_collectives_to_sync import (
    Pair,
    is_collective_start,
    make_synchronous,
    why_not_synchronous,
)
from hloopt.passes.async_ops.host_transfers import starts_transfer
from hloopt.passes.rewriting.selection import selected

_MOST_BEFORE = 1000
"""Instructions that are looked at before a done, so that modules of many pairs stay linear."""


@register("synchronize-collectives", preserves="bits")
class SynchronizeCollectives(ModulePass):
    """Make one synchronous collective of the start and the done of each asynchronous one.

    As convert-async-collectives-to-sync does where nothing runs between them, but in any module,
    scheduled or not, and whatever stands between. The collective stands where the done stood. It
    keeps the start's metadata and backend_config and the done's sharding and frontend attributes,
    and notes the start's name as `async_collective_name`. Sends and receives stay, as do starts
    that anything but one done reads, such as a loop that they run across, and starts that
    something has to follow before their done.

    With `transfers` also what host-memory-transfer-asyncifier splits becomes one instruction again.
    It loses its `dynamic_slice_config`, which holds for the trip that the slice is in: other passes
    may move it. XLA has no such pass. Linear in the module's size.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        names: tuple[str, ...] = option((), "names of the starts to change; none: all")
        transfers: bool = option(
            False, "also copies and slices to and from the host, out of fusions that do no more"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        pairs: dict[Computation, list[Pair]] = {}
        found = [
            instruction
            for computation in module.computations.values()
            if not computation.is_fusion
            for instruction in computation.instructions
            if is_collective_start(instruction)
            or instruction.opcode in SEND_RECV
            or (self.options.transfers and starts_transfer(instruction))
        ]
        for start in selected(found, self.options.names, "start of a collective", context):
            if reason := self.why_not(start):
                context.missed(start, reason)
            elif context.apply(start, "synchronous now"):
                what = "transfers" if starts_transfer(start) else "collectives"
                context.count(f"{what} made synchronous")
                (done,) = start.users
                if start.control_successors:  # they come later now, which others have to see
                    make_synchronous(start.parent, [(start, done)])
                else:
                    pairs.setdefault(start.parent, []).append((start, done))
        for computation, here in pairs.items():
            make_synchronous(computation, here)
        return module.version != before

    def why_not(self, start: Instruction) -> str | None:
        """The reason why an asynchronous collective stays so; None where it can be synchronous."""
        if start.opcode in SEND_RECV:
            return "a transfer between two devices has no synchronous form"
        if start.parent.is_asynchronous:
            return "it is within what another async-start wraps"
        if reason := why_not_synchronous(start):
            return reason
        done = next(iter(start.users), None)
        is_pair = done is not None and (
            done.opcode is Opcode.ASYNC_DONE or done.opcode in OWN_DONES
        )
        if done is None or not is_pair or len(start.users) > 1 or start.is_root:
            return "not one done alone reads it"
        for successor in start.control_successors:
            if successor is not done and _may_be_before(successor, done):
                return f"%{successor.name} has to run after it and may have to before %{done.name}"
        return None


def _may_be_before(instruction: Instruction, done: Instruction) -> bool:
    """Whether an instruction runs before a done, or may have to.

    O(1,000), in a scheduled module O(instructions of the computation).
    """
    if done.parent.module.is_scheduled:
        order = list(done.parent.instructions)
        return order.index(instruction) < order.index(done)
    return depends_on(done, instruction, most=_MOST_BEFORE) is not False
