"""Compute values again, right before their later uses."""

from __future__ import annotations

from collections.abc import Iterator

from hloopt.ir import Instruction, Opcode
from hloopt.ir.clone import own_computations
from hloopt.passes.rematerialization.items import Item
from hloopt.passes.rematerialization.readers import Readers, is_dead
from hloopt.passes.rematerialization.search import BlockSearch
from hloopt.passes.rematerialization.state import State
from hloopt.passes.rematerialization.tracker import MemoryTracker
from hloopt.passes.rematerialization.ways import PARTS_OF_ASYNC

_SUFFIX = ".remat"


class Recomputation:
    """Makes clones of instructions of one computation for those users that are still to come.

    With `removes_originals`, as at the peak only, an instruction without readers goes at once, a
    clone is never cloned, and operands smaller than the result may live longer.
    """

    def __init__(
        self,
        state: State,
        tracker: MemoryTracker,
        search: BlockSearch,
        *,
        removes_originals: bool,
    ) -> None:
        self._state = state
        self._tracker = tracker
        self._search = search
        self._removes_originals = removes_originals
        self._readers = Readers(tracker)
        self._moved: set[Item] = set()
        """Clones that replaced their originals altogether."""

    def apply(self, block: tuple[Item, ...]) -> None:
        """Recompute a block: its last instruction first, as it reads what comes before.

        O(users of the block and of its operands, and what fusions hold).
        """
        for item in reversed(block):
            if self._tracker.unplaced_users(item):
                self._recompute(item)

    def _recompute(self, item: Item) -> None:
        original = item.instruction
        clone = self._clone(original)
        users = self._tracker.unplaced_users(item)
        helpers = self._redirect(item, clone, users)
        place = min(self._places(clone, helpers))
        clone_item = self._tracker.add(clone, place, before=True)
        clone_item.is_candidate = True
        self._readers.add(clone_item)
        new = [clone_item]
        for helper in helpers:
            new.append(self._tracker.add(helper, new[-1]))
            self._tracker.bar(new[-1])
        self._tracker.update([*new, *users])
        self._settle(item, clone_item)

    def _clone(self, original: Instruction) -> Instruction:
        name = clone_name(original.name)
        clone = original.parent.add_clone(original, original.operands, name=name)
        own_computations(clone)
        if "channel_id" in clone.attributes:
            clone.set_attribute("channel_id", str(self._state.next_channel_id()))
        for successor in original.control_successors:
            successor.add_control_predecessor(clone)
        for predecessor in original.control_predecessors:
            clone.add_control_predecessor(predecessor)
        self._state.note_clone(original, clone)
        self._state.report(original, clone)
        return clone

    # -- users ----------------------------------------------------------------------------------

    def _redirect(self, item: Item, clone: Instruction, users: list[Item]) -> list[Instruction]:
        """Let `users` read the clone; the new instructions by which some of them do."""
        helpers: list[Instruction] = []
        elements: dict[int, Instruction] = {}
        made = {clone}
        uses = [(held, user) for held in item.defined for user in users if held in user.used]
        for held, user in uses:
            instruction = user.instruction
            for number, operand in enumerate(instruction.operands):
                if operand in made:
                    continue  # for another part of the same operand
                if self._tracker.item(operand).held[0] is not held:
                    continue
                value = clone
                if held.element is not None and clone.shape is not operand.shape:
                    if held.element not in elements:
                        elements[held.element] = _element(clone, held.element)
                        helpers.append(elements[held.element])
                        self._state.report(operand, elements[held.element])
                    value = elements[held.element]
                if value.shape is not operand.shape:
                    value = _bitcast(value, operand)
                    helpers.append(value)
                    self._state.report(operand, value)
                made.update(helpers[-2:])
                instruction.replace_operand(number, value)
        return helpers

    # -- the place ------------------------------------------------------------------------------

    def _places(self, clone: Instruction, helpers: list[Instruction]) -> Iterator[Item]:
        """Items before which the clone has to come."""
        item = self._tracker.item
        made = set(helpers)
        for reader in (clone, *helpers):
            yield from (item(user) for user in reader.users if user not in made)
        size = self._state.sizes.whole(clone.shape)
        for operand in dict.fromkeys(clone.operands):
            if self._removes_originals and self._state.sizes.whole(operand.shape) < size:
                continue
            if following := self._readers.next(operand, but=clone):
                yield following
        yield from map(item, clone.control_successors)

    # -- the original ---------------------------------------------------------------------------

    def _settle(self, item: Item, clone: Item) -> None:
        """Remember moves, and take away originals that must not or need not stay."""
        tracker = self._tracker
        if self._removes_originals:
            tracker.bar(clone)
        dead = is_dead(item, tracker)
        if dead:
            self._search.forget(item)
            if item in self._moved:
                tracker.bar(clone)
            self._moved.add(clone)
        if dead and (self._removes_originals or item.instruction.opcode in PARTS_OF_ASYNC):
            self._remove(item)

    def _remove(self, item: Item) -> None:
        """Remove an instruction with the helpers that read it; control edges have been copied."""
        waiting = [item]
        for reader in waiting:  # grows
            waiting += map(self._tracker.item, reader.instruction.users)
        for reader in reversed(dict.fromkeys(waiting)):
            instruction = reader.instruction
            self._search.forget(reader)
            self._readers.remove(reader)
            self._tracker.remove(reader)
            instruction.drop_control_dependencies()
            instruction.parent.remove(instruction)


def clone_name(name: str) -> str:
    """The name of a clone: `x.remat` of `x`, `x.remat2` of that, then `x.remat3`."""
    stem, suffix, number = name.rpartition(_SUFFIX)
    if not suffix or (number and not (number.isascii() and number.isdecimal())):
        return f"{name}{_SUFFIX}"
    return f"{stem}{_SUFFIX}{int(number) + 1 if number else 2}"


def _element(clone: Instruction, number: int) -> Instruction:
    return clone.parent.add(
        Opcode.GET_TUPLE_ELEMENT,
        clone.shape.elements[number],
        [clone],
        name="gte.remat",
        attributes={"index": str(number)},
    )


def _bitcast(value: Instruction, operand: Instruction) -> Instruction:
    """`value` in the shape of `operand`, which is a bitcast of the value it stands for."""
    name = "bitcast.remat"
    return value.parent.add(Opcode.BITCAST, operand.shape, [value], name=name)
