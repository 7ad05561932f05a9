"""All-reduces of which a loop stores each result at a place of its own, with other places after.

Reduction works element by element, so what is stored can be reduced all at once after the loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.loops.expressions import constant_value
from hloopt.analysis.loops.sources import source_of
from hloopt.analysis.loops.trip_count import loop_trips
from hloopt.diagnostics import counted
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.reduction_kind import reduction_kind
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.loops import (
    NotMovable,
    SharedBody,
)
from hloopt.passes.rewriting.conversions import can_be_undone


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """The stores of an all-reduce in a loop."""

    collective: Instruction
    index: int
    """The element of the state that the results are stored in."""
    offsets: tuple[int, ...]
    """The offset of the region of all results in it."""
    sizes: tuple[int, ...]
    """The sizes of that region."""


def find_storage(collective: Instruction, body: SharedBody, most_bytes: int) -> Storage | None:
    """The store of an all-reduce's results, each trip's at a place of its own.

    None if they are used in another way. Raises NotMovable if they are stored in a way that does
    not allow to reduce them later, or take more than `most_bytes`. O(instructions on the way +
    users of the state).
    """
    steps = _steps_to_root(collective, body)
    updates = [step for step in steps if step.opcode is Opcode.DYNAMIC_UPDATE_SLICE]
    if not updates:
        return None
    _check_values(collective, steps[: -len(updates)])
    index = body.position(updates[-1])
    _check_buffer(updates[-1], index, body)
    counter, trips = _counter(body)
    element = collective.shape.element_type
    assert element is not None
    size = trips * collective.shape.element_count() * element.bytes
    if size > most_bytes:
        raise NotMovable(
            f"its results are {counted(size, 'byte')} in all trips, more than {most_bytes:,}"
        )
    sizes = list(updates[0].operands[1].shape.dimensions)
    offsets = [0] * len(sizes)
    moving: set[int] = set()
    for update in updates:
        for dimension, offset in enumerate(update.operands[2:]):
            start = _start(update, dimension, offset, body, (counter, trips))
            if start is not None:
                offsets[dimension] += start
            elif update is updates[-1]:
                moving.add(dimension)
            else:
                raise NotMovable(f"%{update.name} stores in what each trip makes anew")
    if len(moving) > 1:
        raise NotMovable(f"%{updates[-1].name} stores along a diagonal")
    for dimension in moving:
        sizes[dimension] = trips
    return Storage(collective, index, tuple(offsets), tuple(sizes))


_FORMS = (Opcode.RESHAPE, Opcode.CONVERT)


def _steps_to_root(collective: Instruction, body: SharedBody) -> list[Instruction]:
    """Reshapes and converts of a value, then updates with it, if these lead to the next state.

    Each is the only user of the one before. Empty if they lead elsewhere.
    """
    steps: list[Instruction] = []
    value = collective
    while len(value.users) == 1 and not value.is_root:
        (user,) = value.users
        is_update = user.opcode is Opcode.DYNAMIC_UPDATE_SLICE and user.operands.index(value) == 1
        if user is body.root:
            return steps
        is_stored = bool(steps) and steps[-1].opcode not in _FORMS
        if not is_update and (is_stored or user.opcode not in _FORMS):
            break
        steps.append(user)
        value = user
    return []


def _check_values(collective: Instruction, forms: list[Instruction]) -> None:
    """Raise NotMovable if what is stored of a result cannot be reduced instead of it."""
    kind = reduction_kind(collective.called[0])
    if kind is None:
        raise NotMovable("its reduction is none of sum, product, minimum and maximum")
    for form in forms:
        if form.opcode is Opcode.CONVERT and not can_be_undone(form, kind):
            raise NotMovable(f"%{form.name} converts its result to {form.shape.type_name}")


def _check_buffer(update: Instruction, index: int, body: SharedBody) -> None:
    """Raise NotMovable unless an update is the only user of the element that it becomes."""
    buffer = update.operands[0]
    if (
        buffer.opcode is not Opcode.GET_TUPLE_ELEMENT
        or buffer.operands[0] is not body.state
        or buffer.tuple_index != index
    ):
        raise NotMovable(f"what it is stored in, %{buffer.name}, is not the state it becomes")
    readers = (reader for read in body.reads(index) for reader in read.users)
    other = next((reader for reader in readers if reader is not update), None)
    if other is not None:
        raise NotMovable(f"%{other.name} reads what it is stored in, too")
    body.require_unread_by_conditions(index)


def _counter(body: SharedBody) -> tuple[int, int]:
    """The element of the state that counts trips from 0, and how many all loops make."""
    found: set[tuple[int, int]] = set()
    for loop in body.loops:
        trips = loop_trips(loop)
        variable = trips.variable
        if trips.computed == 0:
            raise NotMovable(f"%{loop.name} makes no trip")
        if variable is None or (variable.init, variable.step) != (0, 1) or trips.computed is None:
            raise NotMovable(f"%{loop.name} does not count its trips from 0 to a constant")
        found.add((variable.index, trips.computed))
    if len(found) > 1:
        raise NotMovable("the loops with its body make different numbers of trips")
    return found.pop()


def _start(
    update: Instruction,
    dimension: int,
    offset: Instruction,
    body: SharedBody,
    counting: tuple[int, int],
) -> int | None:
    """The start of an update in a dimension; None if it moves by one place in every trip.

    Raises NotMovable if that is not known, or out of bounds.
    """
    counter, trips = counting
    size = update.operands[1].shape.dimensions[dimension]
    room = update.shape.dimensions[dimension] - size
    start = constant_value(offset)
    if start is not None:
        if not 0 <= start <= room:
            raise NotMovable(f"index {dimension} of %{update.name} is out of bounds")
        return start
    if not _counts(offset, body, counter, trips) or size != 1:
        raise NotMovable(f"index {dimension} of %{update.name} is not the loop counter")
    if trips > room + 1:
        raise NotMovable(f"index {dimension} of %{update.name} gets out of bounds")
    return None


def _counts(offset: Instruction, body: SharedBody, counter: int, trips: int) -> bool:
    """Whether an index is the counter of the loops, or the last value of that minus it."""
    if _is_element(offset, body, counter):
        return True
    source, path = source_of(offset)
    if source.opcode is not Opcode.SUBTRACT or path:
        return False
    last, subtracted = source.operands
    return constant_value(last) == trips - 1 and _is_element(subtracted, body, counter)


def _is_element(value: Instruction, body: SharedBody, index: int) -> bool:
    source = source_of(value)
    return source.instruction is body.state and source.path == (index,)
