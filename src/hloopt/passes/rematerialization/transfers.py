"""Keep values in a compact layout, or in host memory, until their later uses."""

from __future__ import annotations

from hloopt.ir import Instruction, Opcode, Shape, array_shape, tuple_shape
from hloopt.passes.rematerialization.items import Item
from hloopt.passes.rematerialization.state import State
from hloopt.passes.rematerialization.tracker import MemoryTracker

_CONTEXT = array_shape("u32")


def compress(item: Item, state: State, tracker: MemoryTracker) -> None:
    """Copy an array into its compact layout, and back right before its next user.

    All users to come read the copy. O(users).
    """
    value = item.instruction
    users = _later_readers(item, tracker)
    add = value.parent.add
    name = f"{value.name}.remat"
    shape = state.sizes.compact(value.shape)
    compressed = add(Opcode.COPY, shape, [value], name=f"{name}_compressed")
    back = add(Opcode.COPY, value.shape, [compressed], name=f"{name}_uncompressed")
    new = [
        tracker.add(compressed, item),
        tracker.add(back, min(users), before=True),
    ]
    _redirect(users, value, back)
    _finish(new, users, state, tracker, value)


def host_offload(item: Item, state: State, tracker: MemoryTracker) -> None:
    """Copy an array to host memory after its definition, and back right before its next user.

    The first transfer ends behind as many instructions as take its time; the second begins before
    as many, but not before the first has ended. O(users + instructions that hide the transfers).
    """
    options = state.options
    to_host = options.bandwidth_to_host_bytes_per_second
    from_host = options.bandwidth_from_host_bytes_per_second
    space = options.host_memory_space
    assert to_host is not None
    assert from_host is not None
    assert space is not None
    value = item.instruction
    users = _later_readers(item, tracker)
    size = state.sizes.of(value.shape)
    in_host = value.shape.with_memory_space(space)
    start, done = _transfer(value, in_host)
    start_back, done_back = _transfer(done, value.shape)

    first = tracker.add(start, item)
    last = tracker.add(done_back, min(users), before=True)
    second = tracker.add(done, _behind(first, last, size / to_host, state))
    third = tracker.add(start_back, _before(last, second, size / from_host, state), before=True)
    _redirect(users, value, done_back)
    _finish([first, second, third, last], users, state, tracker, value)


def _transfer(source: Instruction, target: Shape) -> tuple[Instruction, Instruction]:
    """An asynchronous copy of `source` to the memory space of `target`."""
    add = source.parent.add
    shape = tuple_shape((target, source.shape, _CONTEXT))
    start = add(Opcode.COPY_START, shape, [source])
    return start, add(Opcode.COPY_DONE, target, [start])


def _behind(start: Item, end: Item, seconds: float, state: State) -> Item:
    """The item behind which `seconds` have passed since `start`, or the last before `end`."""
    place, time = start, 0.0
    while time < seconds and place.after is not None and place.after is not end:
        place = place.after
        time += state.seconds(place.instruction)
    return place


def _before(end: Item, start: Item, seconds: float, state: State) -> Item:
    """The item before which `seconds` are left until `end`, or the first behind `start`."""
    place, time = end, 0.0
    while time < seconds and place.before is not None and place.before is not start:
        place = place.before
        time += state.seconds(place.instruction)
    return place


def _later_readers(item: Item, tracker: MemoryTracker) -> list[Item]:
    """The instructions to come that have the value as operand, in the order of the schedule."""
    readers = map(tracker.item, item.instruction.users)
    return sorted(reader for reader in readers if not reader.is_placed)


def _redirect(users: list[Item], value: Instruction, copy: Instruction) -> None:
    for user in users:
        user.instruction.exchange_operand(value, copy)


def _finish(
    new: list[Item], users: list[Item], state: State, tracker: MemoryTracker, value: Instruction
) -> None:
    for item in new:
        tracker.bar(item)
        state.report(value, item.instruction)
    tracker.update([*new, *users])
