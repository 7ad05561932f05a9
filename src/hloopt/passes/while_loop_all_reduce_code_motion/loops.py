"""What the forms of use have in common: the loops of a body, zeros, and reasons to stay."""

from __future__ import annotations

from typing import NamedTuple

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literal import canonical_literal
from hloopt.ir.opcode import Opcode


class NotMovable(Exception):
    """Why a collective has to stay in its loop: a phrase for a remark."""


class SharedBody(NamedTuple):
    """The body of one or more while loops, which nothing else calls."""

    computation: Computation
    state: Instruction
    """Its parameter, a tuple that is only read by get-tuple-elements."""
    loops: tuple[Instruction, ...]

    @property
    def root(self) -> Instruction:
        """The next state: a tuple."""
        return self.computation.root

    def reads(self, index: int) -> list[Instruction]:
        """What reads an element of the state in the body. O(users of the state)."""
        return [read for read in self.state.users if read.tuple_index == index]

    def require_unread_by_conditions(self, index: int) -> None:
        """Raise NotMovable if a condition reads an element of the state, or all of it."""
        for loop in self.loops:
            for user in loop.called[1].parameters[0].users:
                if user.opcode is not Opcode.GET_TUPLE_ELEMENT or user.tuple_index == index:
                    raise NotMovable(f"the condition of %{loop.name} reads element {index}")

    def require_own_conditions(self) -> None:
        """Raise NotMovable if anything else than these loops calls one of their conditions."""
        for loop in self.loops:
            if not set(self.loops).issuperset(loop.called[1].callers):
                raise NotMovable(f"%{loop.called[1].name} is the condition of another loop, too")


def shared_body(computation: Computation) -> SharedBody | str | None:
    """The computation as a body of loops; why it is none that can change; None if it is no body."""
    callers = tuple(computation.callers)
    if not any(c.opcode is Opcode.WHILE and c.called[0] is computation for c in callers):
        return None
    if any(
        caller.opcode is not Opcode.WHILE or caller.called[1] is computation for caller in callers
    ):
        return f"%{computation.name} is called by something else than loops"
    state = computation.parameters[0]
    if not state.shape.is_tuple or computation.root.opcode is not Opcode.TUPLE:
        return f"the root of %{computation.name} is no tuple"
    other = next((u for u in state.users if u.opcode is not Opcode.GET_TUPLE_ELEMENT), None)
    if other is not None or state.is_root:
        return f"%{(other or state).name} uses the whole state of the loop"
    return SharedBody(computation, state, callers)


def is_zero(value: Instruction) -> bool:
    """Whether a value is a broadcast scalar constant 0, or that constant."""
    if value.opcode is Opcode.BROADCAST:
        value = value.operands[0]
    if value.opcode is not Opcode.CONSTANT or not value.shape.is_scalar:
        return False
    return canonical_literal(value.payload, value.shape) in ("0", "-0")


def only_user(value: Instruction) -> Instruction:
    """The one user of a value. Raises NotMovable if it has none, several, or is the root."""
    if len(value.users) == 1 and not value.is_root:
        return next(iter(value.users))
    users = "is not used" if not value.users else "has several users"
    raise NotMovable(f"%{value.name} {'is the root' if value.is_root else users}")


def position_in_root(body: SharedBody, value: Instruction) -> int:
    """Which element of the next state a value is. Raises NotMovable if it is several."""
    positions = [index for index, o in enumerate(body.root.operands) if o is value]
    if len(positions) != 1:
        raise NotMovable(f"%{value.name} is several elements of the next state")
    return positions[0]
