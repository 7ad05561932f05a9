"""Shared by all forms of use: the loops of a body, zeros, and reasons to stay."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.analysis.calls import loops_with_body
from hloopt.diagnostics import counted
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import canonical_literal
from hloopt.ir.opcode import Opcode


class NotMovable(Exception):
    """The reason why a collective has to stay in its loop: a phrase for a remark."""


class SharedBody:
    """The body of one or more while loops, which nothing else calls.

    It takes a tuple, which is read by get-tuple-elements only, and gives one. Made in O(users of
    the states + elements); what it says holds until the body changes.
    """

    def __init__(self, computation: Computation, loops: tuple[Instruction, ...]) -> None:
        self.computation = computation
        self.loops = loops
        self.state = computation.parameters[0]
        self._reads = _reads(self.state)
        self._conditions = [(loop, _reads(loop.called[1].parameters[0])) for loop in loops]
        self._positions: dict[Instruction, list[int]] = {}
        for index, value in enumerate(self.root.operands):
            self._positions.setdefault(value, []).append(index)

    @property
    def root(self) -> Instruction:
        """The next state."""
        return self.computation.root

    def reads(self, index: int) -> Sequence[Instruction]:
        """The instructions of the body that read an element of the state."""
        return self._reads.get(index, ())

    def position(self, value: Instruction) -> int:
        """The element of the next state that a value is. Raises NotMovable if it is several."""
        positions = self._positions.get(value, ())
        if len(positions) != 1:
            raise NotMovable(
                f"%{value.name} is {counted(len(positions), 'element')} of the next state"
            )
        return positions[0]

    def require_unread_by_conditions(self, index: int) -> None:
        """Raise NotMovable if a condition reads an element of the state, or all of it."""
        for loop, reads in self._conditions:
            if index in reads or None in reads:
                raise NotMovable(f"the condition of %{loop.name} reads element {index}")

    def require_own_conditions(self) -> None:
        """Raise NotMovable if anything else than these loops calls one of their conditions."""
        for loop in self.loops:
            if not set(self.loops).issuperset(loop.called[1].callers):
                raise NotMovable(f"%{loop.called[1].name} is the condition of another loop, too")


def _reads(state: Instruction) -> dict[int | None, list[Instruction]]:
    """The readers of each element of a tuple; None stands for those that use all of it."""
    found: dict[int | None, list[Instruction]] = {}
    for user in state.users:
        is_read = user.opcode is Opcode.GET_TUPLE_ELEMENT
        found.setdefault(user.tuple_index if is_read else None, []).append(user)
    return found


def shared_body(computation: Computation) -> SharedBody | str | None:
    """The computation as a body of loops; why it cannot change; None if it is not a body."""
    callers = tuple(computation.callers)
    if not loops_with_body(computation):
        return None
    if any(
        caller.opcode is not Opcode.WHILE or caller.called[1] is computation for caller in callers
    ):
        return f"%{computation.name} is called by something else than loops"
    state = computation.parameters[0]
    if not state.shape.is_tuple or computation.root.opcode is not Opcode.TUPLE:
        return f"the root of %{computation.name} is not a tuple"
    other = next((u for u in state.users if u.opcode is not Opcode.GET_TUPLE_ELEMENT), None)
    if other is not None or state.is_root:
        return f"%{(other or state).name} uses the whole state of the loop"
    return SharedBody(computation, callers)


def is_zero(value: Instruction) -> bool:
    """Whether a value is a broadcast scalar constant 0, or that constant."""
    if value.opcode is Opcode.BROADCAST:
        value = value.operands[0]
    if value.opcode is not Opcode.CONSTANT or not value.shape.is_scalar:
        return False
    return canonical_literal(value.payload, value.shape) in ("0", "-0")


def only_user(value: Instruction) -> Instruction:
    """The one user of a value, which is not the root. Raises NotMovable if it has none, or several.

    The root of a loop's body is a tuple.
    """
    if len(value.users) == 1:
        return next(iter(value.users))
    users = "has several users" if value.users else "is not used"
    raise NotMovable(f"%{value.name} {users}")
