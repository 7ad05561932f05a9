"""A loop of one trip that does the work of all."""

from __future__ import annotations

from hloopt.analysis.loops.annotation import STAYS_WITH_ONE_TRIP
from hloopt.ir.attributes.backend_config import with_gpu_fields
from hloopt.ir.attributes.frontend_attributes import frontend_attributes, set_frontend_attributes
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.ir.tuples import read_element
from hloopt.passes.collectives.collective_pipeliner.copies import Copier, integer
from hloopt.passes.collectives.windowed_einsum.loops import Counter, WindowedLoop, dots_of, reads_of

_KEEPS_COUNTER = frozenset((Opcode.ADD, Opcode.SUBTRACT))


def unroll(loop: Instruction, counter: Counter, copier: Copier) -> None:
    """Let a loop do all its trips in one, so that work of one trip can overlap that of the next.

    What reads the counter in a trip reads a constant, but for sums with a constant. Body and
    condition are new computations called `unrolled_` and the old name. O(instructions of the
    result).
    """
    body, condition = loop.called
    module = body.module
    unrolled = module.add_computation(f"unrolled_{body.name}")
    unrolled.execution_thread = body.execution_thread
    _share_constants(body)
    (state,) = body.parameters
    previous = unrolled.add_clone(state, [], name=f"{state.name}.clone")
    order = list(body.instructions) if module.is_scheduled else post_order(body)
    for trip in range(counter.trips):
        copies = {state: previous}
        for instruction in order:
            if instruction is not state:
                copier.copy_in_order(instruction, copies, unrolled)
        for read in reads_of(state, counter.element):
            _replace_counter(copies[read], counter.init + trip * counter.step)
        previous = copies[body.root]
    unrolled.set_root(previous)
    loop.set_called((unrolled, _one_trip(condition, counter)))
    set_frontend_attributes(loop, {**frontend_attributes(loop), STAYS_WITH_ONE_TRIP: "true"})
    if "backend_config" in loop.attributes:
        loop.set_attribute("backend_config", None)  # trips and steps of the loop that it was
    module.remove_computations([each for each in (body, condition) if not each.callers])


def _share_constants(body: Computation) -> None:
    """Make one of equal scalar constants, which rules make anew wherever they apply."""
    known: dict[tuple[Shape, str], Instruction] = {}
    for constant in list(body.instructions):
        if constant.opcode is Opcode.CONSTANT and constant.shape.is_scalar:
            first = known.setdefault((constant.shape, constant.payload), constant)
            if first is not constant and not constant.has_control_dependencies:
                constant.replace_all_uses_with(first)
                body.remove(constant)


def _replace_counter(read: Instruction, value: int) -> None:
    constant: Instruction | None = None
    for user in list(read.users):
        adds_constant = user.opcode in _KEEPS_COUNTER and any(
            operand.opcode is Opcode.CONSTANT for operand in user.operands
        )
        if user.opcode is Opcode.TUPLE or adds_constant:
            continue
        if constant is None:
            constant = integer(read, value)
        user.exchange_operand(read, constant)


def _one_trip(condition: Computation, counter: Counter) -> Computation:
    made = condition.module.add_computation(f"unrolled_{condition.name}")
    made.execution_thread = condition.execution_thread
    (old,) = condition.parameters
    state = made.add_clone(old, [], name=f"{old.name}.clone")
    value = read_element(state, counter.element)
    limit = integer(value, counter.init)
    direction = "LE" if counter.step > 0 else "GE"
    attributes = {"direction": direction}
    made.set_root(
        made.add(Opcode.COMPARE, array_shape("pred"), [value, limit], attributes=attributes)
    )
    return made


def give_queues(windowed: WindowedLoop, first: int) -> None:
    """Let each dot of an unrolled loop run in a queue of its own, and its first permute early.

    Queues are numbered from `first`: loops run one after the other, and may share them. That
    permute reads the element of the state that is handed around. O(instructions).
    """
    body = windowed.loop.called[0]
    for queue, dot in enumerate(dots_of(body.instructions), first):
        dot.set_attribute("backend_config", with_gpu_fields(dot, operation_queue_id=str(queue)))
    for read in reads_of(body.parameters[0], 0 if windowed.gathers else 2):
        for user in read.users:
            if user.opcode is Opcode.COLLECTIVE_PERMUTE:
                user.set_attribute(
                    "backend_config", with_gpu_fields(user, force_earliest_schedule=True)
                )
