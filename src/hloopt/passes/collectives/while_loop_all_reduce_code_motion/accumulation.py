"""Collectives of which a loop only accumulates the results: a sum over trips of sums over devices.

Sums over devices can be taken of the sum over trips as well, as far as all that is done to the
results on their way is linear, and the same on all devices of a group.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hloopt.analysis.replication.groups import scalar_of_broadcast
from hloopt.ir.devices.collective_mode import participants_key
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.reduction_kind import ReductionKind, reduction_kind
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.loops import (
    NotMovable,
    SharedBody,
    is_zero,
    only_user,
)
from hloopt.passes.collectives.while_loop_all_reduce_code_motion.round_trip import (
    REARRANGING,
    gives_back,
)
from hloopt.passes.rewriting.conversions import commutes

SUMMED_TYPES = frozenset(
    (
        *("bf16", "f16", "f32", "f64"),
        *(f"{sign}{bits}" for sign in "su" for bits in (8, 16, 32, 64)),
    )
)
"""Element types that are accumulated."""
SameInGroup = Callable[[Instruction, Instruction], bool]
"""Whether a value is the same on all devices of each group of a collective."""


@dataclass(frozen=True, slots=True, eq=False)
class Accumulation:
    """A sum over the trips of a loop of what a collective gives."""

    collective: Instruction
    index: int
    """The element of the state that holds the sum."""
    addition: Instruction
    """An add, or a scatter that adds."""
    selects: tuple[Instruction, ...] = ()
    """The select between collective and addition, if that chooses between it and zeros."""
    mask: Instruction | None = None
    """The select that leaves the sum so far to one device of each group, and zeros to the
    others."""


def find_accumulations(
    collective: Instruction, body: SharedBody, is_same_in_group: SameInGroup
) -> list[Accumulation]:
    """All sums that the results of a collective in a loop's body end in.

    Raises NotMovable if they end anywhere else. O(instructions on the ways + users of the state).
    """
    if reduction_kind(collective.called[0]) is not ReductionKind.SUM:
        raise NotMovable("it is not a sum")
    if collective.shape.type_name not in SUMMED_TYPES:
        raise NotMovable(f"values of type {collective.shape.type_name} are not accumulated")
    search = _Search(collective, body, is_same_in_group)
    search.follow()
    if not search.found:
        raise NotMovable("nothing accumulates its results")
    return search.found


@dataclass(slots=True, eq=False)
class _Search:
    """Follows the results of one collective to the additions that accumulate them."""

    collective: Instruction
    body: SharedBody
    is_same_in_group: SameInGroup
    found: list[Accumulation] = field(default_factory=list)

    @property
    def is_scatter(self) -> bool:
        return self.collective.opcode is Opcode.REDUCE_SCATTER

    def follow(self) -> None:
        """Go all ways from the collective; fills `found`."""
        stack: list[tuple[Instruction, tuple[Instruction, ...]]] = [(self.collective, ())]
        while stack:
            value, way = stack.pop()
            for user in reversed(value.users):
                if user.opcode is Opcode.ADD:
                    self.found.append(self._accumulation(user, value, way))
                else:
                    self._check_step(user, value)
                    stack.append((user, (*way, user)))

    def _check_step(self, step: Instruction, value: Instruction) -> None:
        """Raise NotMovable unless an instruction on the way is linear and alike on all devices."""
        match step.opcode:
            case Opcode.SELECT:
                self._check_select(step, value)
                return
            case Opcode.CONVERT if commutes(step, ReductionKind.SUM) and not self.is_scatter:
                return
            case Opcode.BITCAST if step.shape.element_type is not value.shape.element_type:
                pass
            case Opcode.BROADCAST | Opcode.SLICE if not self.is_scatter:
                return
            case Opcode.MULTIPLY if not self.is_scatter:
                self._check_scaling(step, value)
                return
            case opcode if opcode in REARRANGING and not self.is_scatter:
                return
        raise NotMovable(f"%{step.name} uses it ({step.opcode})")

    def _check_select(self, select: Instruction, value: Instruction) -> None:
        predicate, *sides = select.operands
        others = [side for side in sides if side is not value]
        if len(others) != 1 or predicate is value or not is_zero(others[0]):
            raise NotMovable(f"%{select.name} chooses between it and something else than zero")
        if self.is_scatter and scalar_of_broadcast(predicate) is None:
            raise NotMovable(f"%{predicate.name} may choose differently for each element")
        if not self.is_same_in_group(predicate, self.collective):
            raise NotMovable(f"%{predicate.name} may choose differently on each device")

    def _check_scaling(self, multiply: Instruction, value: Instruction) -> None:
        """Products are linear in one factor if the other is the same on all devices.

        As in XLA this is only looked for where a scalar all-reduce gives the other factor.
        """
        left, right = multiply.operands
        factor = right if left is value else left
        is_spread = False
        while factor.opcode in (Opcode.BROADCAST, Opcode.CONVERT):
            is_spread |= factor.opcode is Opcode.BROADCAST
            factor = factor.operands[0]
        if factor.opcode is not Opcode.ALL_REDUCE or not factor.shape.is_scalar or not is_spread:
            raise NotMovable(f"%{multiply.name} multiplies it by what is not a scalar all-reduce")
        if self.collective.shape.is_scalar:
            raise NotMovable(f"%{multiply.name} multiplies two scalar all-reduces")
        if not (
            participants_key(factor) == participants_key(self.collective)
            or self.is_same_in_group(factor, self.collective)
        ):
            raise NotMovable(f"%{factor.name}, which scales it, may differ between its devices")

    # -- additions ----------------------------------------------------------------------------

    def _accumulation(
        self, addition: Instruction, value: Instruction, way: tuple[Instruction, ...]
    ) -> Accumulation:
        left, right = addition.operands
        if left is right:
            raise NotMovable(f"%{addition.name} adds it to itself")
        up = self._way_from_state(addition, right if left is value else left)
        down = self._way_to_root(addition)
        index = up[0].tuple_index
        name = addition.name
        end = down[-1] if down else addition
        if self.body.position(end) != index:
            raise NotMovable(f"what %{name} adds it to comes from another element of the state")
        if self.is_scatter and (len(up) > 1 or down):
            raise NotMovable(f"what %{name} adds a reduce-scatter to is not the state as it is")
        if self.is_scatter:
            self.body.require_own_conditions()
        self._check_slices(up, down)
        if not gives_back((*up, *down)):
            raise NotMovable(f"what %{name} adds it to changes its place from trip to trip")
        self._check_uses(index, {*up, *down, addition})
        self.body.require_unread_by_conditions(index)
        return Accumulation(self.collective, index, addition, way if self.is_scatter else ())

    def _way_from_state(self, addition: Instruction, value: Instruction) -> list[Instruction]:
        """The path from the state to an operand of an addition, a get-tuple-element first."""
        way: list[Instruction] = [value]
        while value.opcode in _ON_THE_WAY or value.opcode is Opcode.DYNAMIC_SLICE:
            if value.opcode is Opcode.CONVERT and not _holds_all(value):
                raise NotMovable(f"%{value.name} converts the state to {value.shape.type_name}")
            value = value.operands[0]
            way.append(value)
        if value.opcode is not Opcode.GET_TUPLE_ELEMENT or value.operands[0] is not self.body.state:
            raise NotMovable(f"%{addition.name} adds it to %{value.name}, which is not a state")
        return way[::-1]

    def _way_to_root(self, addition: Instruction) -> list[Instruction]:
        """The path from an addition to the next state, each the only user of the one before."""
        way: list[Instruction] = []
        value = addition
        while (user := only_user(value)) is not self.body.root:
            is_update = user.opcode is Opcode.DYNAMIC_UPDATE_SLICE and user.operands[1] is value
            if not is_update and user.opcode not in _ON_THE_WAY:
                raise NotMovable(f"%{user.name} uses the sum %{addition.name}")
            if user.opcode is Opcode.CONVERT and not commutes(user, ReductionKind.SUM):
                raise NotMovable(f"%{user.name} converts the sum to {user.shape.type_name}")
            way.append(user)
            value = user
        return way

    def _check_slices(self, up: list[Instruction], down: list[Instruction]) -> None:
        """A part of the state that is summed has to be put back where it was taken."""
        taken = [step for step in up if step.opcode is Opcode.DYNAMIC_SLICE]
        updates = [step for step in down if step.opcode is Opcode.DYNAMIC_UPDATE_SLICE]
        if not taken and not updates:
            return
        if len(taken) != 1 or len(updates) != 1:
            raise NotMovable("the sum is not put back where it was taken from the state")
        (part,), (update,) = taken, updates
        if (
            part.operands[1:] != update.operands[2:]
            or not _same_value(part.operands[0], update.operands[0])
            or part.shape.dimensions != update.operands[1].shape.dimensions
        ):
            raise NotMovable(f"%{update.name} does not update what %{part.name} took")
        for index in part.operands[1:]:
            if not self.is_same_in_group(index, self.collective):
                raise NotMovable(f"%{index.name}, an index of %{part.name}, may differ")

    def _check_uses(self, index: int, known: set[Instruction]) -> None:
        """Raise NotMovable if anything else than the accumulation depends on its element."""
        stack = list(self.body.reads(index))
        while stack:
            value = stack.pop()
            if value.opcode is Opcode.ADD or value.opcode is Opcode.DYNAMIC_UPDATE_SLICE:
                continue
            for user in value.users:
                if user not in known:
                    raise NotMovable(f"%{user.name} reads element {index} of the state, too")
                stack.append(user)


_ON_THE_WAY = REARRANGING | {Opcode.CONVERT}


def _holds_all(convert: Instruction) -> bool:
    """Whether a sum loses nothing but precision when it is converted in every trip."""
    source, target = convert.operands[0].shape.element_type, convert.shape.element_type
    assert source is not None
    assert target is not None
    if source.is_floating and target.is_floating:
        return True
    return source.is_integral and target.is_integral and target.bits >= source.bits


def _same_value(a: Instruction, b: Instruction) -> bool:
    """Whether two values are one, or the same element of one tuple."""
    return a is b or (
        a.opcode is b.opcode is Opcode.GET_TUPLE_ELEMENT
        and a.operands == b.operands
        and a.tuple_index == b.tuple_index
    )
