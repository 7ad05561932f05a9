"""All-reduces of what each device scatters into a sum of which one device keeps the rest.

A partitioner makes them of `sum = scatter-add(sum, …)` with updates on all devices: one of each
group scatters into the sum, the others into zeros, and an all-reduce adds up what they have.
"""

from __future__ import annotations

from hloopt.analysis.device_values import DeviceValues
from hloopt.analysis.replication.groups import scalar_of_broadcast
from hloopt.ir.devices.collective_devices import device_groups
from hloopt.ir.devices.grid import Grid
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.reduction_kind import ReductionKind, reduction_kind
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.accumulation import (
    SUMMED_TYPES,
    Accumulation,
    SameInGroup,
)
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.loops import (
    NotMovable,
    SharedBody,
    is_zero,
    only_user,
)
from hloopt.passes.rewriting.conversions import commutes


def find_scattering(
    collective: Instruction,
    body: SharedBody,
    values: DeviceValues,
    grid: Grid,
    is_same_in_group: SameInGroup,
) -> Accumulation | None:
    """The element of the state that a loop scatters into before an all-reduce; None if into none.

    Raises NotMovable where that is not a sum over all devices of what each of them scatters in all
    trips. O(instructions on the way + devices).
    """
    scatter = _without_converts(collective.operands[0])
    if scatter.opcode is not Opcode.SCATTER or len(scatter.operands) != 3:
        return None
    mask = scatter.operands[0]
    state = _state_behind(mask, body)
    if state is None:
        return None
    for reduction in (collective.called[0], scatter.called[0]):
        if reduction_kind(reduction) is not ReductionKind.SUM:
            raise NotMovable(f"%{reduction.name} is not a sum")
    if collective.shape.type_name not in SUMMED_TYPES:
        raise NotMovable(f"values of type {collective.shape.type_name} are not accumulated")
    if mask is state:
        raise NotMovable(f"all devices scatter into %{state.name}, which they all have")
    last = collective
    while (user := only_user(last)) is not body.root:
        if user.opcode is not Opcode.CONVERT:
            raise NotMovable(f"%{user.name} uses it ({user.opcode})")
        last = user
    _check_converts(collective, scatter, last)
    index = state.tuple_index
    if body.position(last) != index:
        raise NotMovable(f"%{scatter.name} does not scatter into the state that it becomes")
    users = [user for read in body.reads(index) for user in read.users]
    if users != [mask] or len(mask.users) > 1 or len(scatter.users) > 1:
        raise NotMovable(f"not only %{scatter.name} reads element {index} of the state")
    body.require_unread_by_conditions(index)
    _check_keepers(mask, state, device_groups(collective, grid), values)
    for loop in body.loops:
        init = loop.operands[0]
        if init.opcode is not Opcode.TUPLE:
            raise NotMovable(f"what %{loop.name} starts from, %{init.name}, is not a tuple")
        first = init.operands[index]
        if not is_same_in_group(first, collective):
            raise NotMovable(f"%{first.name}, which %{loop.name} starts from, may differ")
    return Accumulation(collective, index, scatter, mask=mask)


def _without_converts(value: Instruction) -> Instruction:
    while value.opcode is Opcode.CONVERT:
        value = value.operands[0]
    return value


def _state_behind(value: Instruction, body: SharedBody) -> Instruction | None:
    """The element of the state that a value is, or that a select chooses or zero."""
    if value.opcode is Opcode.SELECT:
        sides = [side for side in value.operands[1:] if not is_zero(side)]
        value = sides[0] if len(sides) == 1 else value
    is_state = value.opcode is Opcode.GET_TUPLE_ELEMENT and value.operands[0] is body.state
    return value if is_state else None


def _check_converts(collective: Instruction, scatter: Instruction, last: Instruction) -> None:
    for value, end in ((collective.operands[0], scatter), (last, collective)):
        while value is not end:
            if not commutes(value, ReductionKind.SUM):
                raise NotMovable(f"%{value.name} converts it to {value.shape.type_name}")
            value = value.operands[0]


def _check_keepers(
    mask: Instruction,
    state: Instruction,
    groups: list[tuple[int, ...]],
    values: DeviceValues,
) -> None:
    """Raise NotMovable unless one device of each group scatters into the state."""
    predicate, on_true, _ = mask.operands
    scalar = scalar_of_broadcast(predicate)
    chosen = None if scalar is None else values.of(scalar)
    if chosen is None:
        raise NotMovable(f"%{predicate.name} depends on more than the number of the device")
    for group in groups:
        if max(group) >= len(chosen):
            raise NotMovable(f"it names device {max(group)}, and there are {len(chosen)}")
        keepers = [device for device in group if bool(chosen[device]) is (on_true is state)]
        if len(keepers) != 1:
            raise NotMovable(f"{len(keepers)} devices of a group scatter into %{state.name}")
