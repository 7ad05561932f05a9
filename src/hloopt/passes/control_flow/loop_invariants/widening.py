"""Loops that carry more: a copy of a loop with further values that every trip hands on."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.clone import copy_instructions
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.ir.tuples import element, make_tuple, read_element
from hloopt.passes.control_flow.while_loop_simplifier.annotations import annotate, notes_of
from hloopt.passes.rewriting.replace import inherit, replace_instruction


class WideLoop:
    """A loop and the one in its place, which carries `added` values behind the old elements.

    The new computations are called `wide.` and the old name; the old ones stay for dce. A new loop
    has the control dependencies of the old one. O(body + condition + elements + users).
    """

    def __init__(
        self, loop: Instruction, added: Sequence[Instruction], origins: Sequence[str] = ()
    ) -> None:
        self._count = len(loop.shape.elements)
        self._added = added
        self._shape = tuple_shape([*loop.shape.elements, *[value.shape for value in added]])
        body, condition = loop.called
        self.copies: dict[Instruction, Instruction] = {}
        """The instructions of the new body by those of the old one."""
        wide_body = self._widened(body, self.copies)
        wide_condition = self._widened(condition, {})
        self._state = wide_body.parameters[0]
        self._hand_on(wide_body)
        self.loop = self._replace(loop, (wide_body, wide_condition), origins)

    def taken(self, number: int) -> Instruction:
        """The added value of a number, as the new body takes it: a new instruction."""
        made = read_element(self._state, self._count + number)
        made.take_name(made.parent.module.instruction_names.unique(f"{made.parent.name}.in"))
        return made

    def _widened(
        self, computation: Computation, copies: dict[Instruction, Instruction]
    ) -> Computation:
        """A copy of body or condition that takes the wide state and gives what the old one did."""
        made = computation.module.add_computation(f"wide.{computation.name}")
        made.execution_thread = computation.execution_thread
        old = computation.parameters[0]
        state = made.add(Opcode.PARAMETER, self._shape, name=f"wide.{old.name}", payload="0")
        prefix = _Prefix(state, self._count)
        copies.update(_copied_reads(old, prefix))
        if old.is_root or any(user not in copies for user in old.users):
            copies[old] = prefix.whole()
        rest = [i for i in stable_order(computation) if i not in copies and i is not old]
        copies.update(copy_instructions(rest, made, copies))
        made.set_root(copies[computation.root])
        return made

    def _hand_on(self, body: Computation) -> None:
        root = body.root
        elements = [element(root, index) for index in range(self._count)]
        elements += [self._through(number) for number in range(len(self._added))]
        wide = make_tuple(body, elements)
        inherit(root, wide)
        self._annotate(wide, root, ())
        body.set_root(wide)

    def _annotate(self, wide: Instruction, old: Instruction, origins: Sequence[str]) -> None:
        """Let the wide state say of its elements what the old one did, and `origins` of the added
        ones; without these it has none."""
        notes = notes_of(old)
        if not origins:
            notes.pop("origin", None)
        added = {
            "origin": [*origins],
            "sharding": [v.attributes.get("sharding", "{replicated}") for v in self._added],
        }
        for name, leaves in notes.items():
            notes[name] = [*leaves, *added[name]]
        annotate(wide, notes, lambda leaves, _: leaves)

    def _through(self, number: int) -> Instruction:
        made = read_element(self._state, self._count + number)
        made.take_name(made.parent.module.instruction_names.unique(f"{made.parent.name}.through"))
        return made

    def _replace(
        self, loop: Instruction, called: tuple[Computation, Computation], origins: Sequence[str]
    ) -> Instruction:
        parent, (old_init,) = loop.parent, loop.operands
        taken = [element(old_init, index) for index in range(self._count)]
        init = parent.add(Opcode.TUPLE, self._shape, [*taken, *self._added])
        wide = parent.add_clone(loop, [init])
        wide.set_called(called)
        wide.shape = self._shape
        self._annotate(wide, loop, origins)
        prefix = _Prefix(wide, self._count)
        for read, copy in _copied_reads(loop, prefix).items():
            replace_instruction(read, copy)
        for predecessor in [*loop.control_predecessors]:
            wide.add_control_predecessor(predecessor)
        if loop.users or loop.is_root:
            whole = prefix.whole()
            if "origin" in loop.attributes:
                whole.set_attribute("origin", loop.attributes["origin"])
            loop.replace_all_uses_with(whole)
        loop.move_control_dependencies_to(wide)
        parent.remove(loop)
        return wide


class _Prefix:
    """The first elements of a wide state, each read once."""

    def __init__(self, state: Instruction, count: int) -> None:
        self._state, self._count = state, count
        self._reads: dict[int, Instruction] = {}

    def __getitem__(self, index: int) -> Instruction:
        if index not in self._reads:
            self._reads[index] = read_element(self._state, index)
        return self._reads[index]

    def whole(self) -> Instruction:
        """The old state, as a tuple of these elements."""
        return make_tuple(self._state.parent, [self[index] for index in range(self._count)])


def _copied_reads(state: Instruction, prefix: _Prefix) -> dict[Instruction, Instruction]:
    """The reads of elements of an old state, each with that of the wide one."""
    reads = [
        user
        for user in state.users
        if user.opcode is Opcode.GET_TUPLE_ELEMENT and not user.has_control_dependencies
    ]
    found = {read: prefix[read.tuple_index] for read in reads}
    for read, copy in found.items():
        inherit(read, copy)
    return found


def total_bytes(shape: Shape) -> int:
    """The bytes of all arrays of a shape, without padding."""
    return sum(
        leaf.element_count() * leaf.element_type.bytes
        for leaf in shape.leaves()
        if leaf.is_array and leaf.element_type is not None
    )
