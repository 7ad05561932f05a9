"""Let the collectives of a computation run in one order on all devices."""

from __future__ import annotations

from hloopt.analysis.async_operations import OWN_STARTS, SYNC_COLLECTIVES, async_form
from hloopt.analysis.reachability import Reachability
from hloopt.ir.callers import with_callers
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register

_MAY_BEGIN = frozenset((*SYNC_COLLECTIVES, *OWN_STARTS, Opcode.ASYNC_START))


@register(
    "collectives-schedule-linearizer",
    preserves="bits",
    xla=XlaPass(
        "CollectivesScheduleLinearizer",
        "xla/hlo/transforms/collectives/collectives_schedule_linearizer.h",
        compared="nothing",
    ),
)
class CollectivesScheduleLinearizer(ModulePass):
    """Add control dependencies so that each collective waits for the one before it.

    Devices that choose their kernels, and so their schedules, each for itself could otherwise meet
    in different orders. The order is the post-order of each computation, or that of the schedule;
    of an asynchronous collective the done comes before what begins the next one. Loops, calls and
    conditionals count as the collectives that they run, unlike in XLA. Where operands order
    two collectives already, nothing is added. O(edges), and what is asked of reachability.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        running = _running_collectives(module)
        for computation in module.computations.values():
            if not (computation.is_fusion or computation.is_asynchronous):
                _linearize(computation, running, context)
        return module.version != before


def _running_collectives(module: Module) -> set[Computation]:
    """The computations that run collectives, directly or in callees. O(instructions)."""
    return with_callers(
        c for c in module.computations.values() if any(map(_begins_collective, c.instructions))
    )


def _linearize(computation: Computation, running: set[Computation], context: PassContext) -> None:
    is_scheduled = computation.module.is_scheduled
    order = list(computation.instructions) if is_scheduled else post_order(computation)
    begins = [i for i in order if _begins_collective(i) or not running.isdisjoint(i.called)]
    if len(begins) < 2:
        return
    place = {instruction: number for number, instruction in enumerate(order)}
    paths = Reachability(computation)
    last = _end_of(begins[0])
    for begin in begins[1:]:
        if is_scheduled and place[last] > place[begin]:
            context.missed(begin, f"the schedule has it before %{last.name}")
        elif not paths.connected(last, begin):
            if not context.apply(begin, f"waits for %{last.name}"):
                return
            begin.add_control_predecessor(last)
            paths.update([begin])
            context.count("collectives ordered")
        last = _end_of(begin)


def _begins_collective(instruction: Instruction) -> bool:
    if instruction.opcode not in _MAY_BEGIN:
        return False
    outer, inner = async_form(instruction)
    return inner in SYNC_COLLECTIVES and outer in (Opcode.ASYNC_START, inner)


def _end_of(begin: Instruction) -> Instruction:
    """The done of a start, itself for a synchronous collective or a caller of some."""
    if begin.opcode not in OWN_STARTS and begin.opcode is not Opcode.ASYNC_START:
        return begin
    return next((user for user in begin.users if user.opcode.endswith("-done")), begin)
