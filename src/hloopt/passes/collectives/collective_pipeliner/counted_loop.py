"""Loops whose counter and trips are proved, which are those that can be pipelined."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from hloopt.analysis.loops.induction import initial_value
from hloopt.analysis.loops.trip_count import LoopTrips, loop_trips
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order
from hloopt.ir.shapes.shape import Shape, tuple_shape
from hloopt.passes.collectives.collective_pipeliner.effects import has_effect


class NotPipelined(Exception):
    """The reason why an instruction stays where it is: the reason of a remark."""


@dataclass(frozen=True, eq=False)
class CountedLoop:
    """A while loop over a tuple, whose trips a counter tells. Made by `counted_loop`."""

    instruction: Instruction
    counter: int
    """The element of the state counts."""
    start: int
    """The counter in the first trip."""
    step: int
    """The step that every trip adds to it."""
    trips: int
    """At least two."""
    as_xla: bool = False
    """Whether values are followed only where XLA's pass follows them."""

    @property
    def caller(self) -> Computation:
        return self.instruction.parent

    @property
    def body(self) -> Computation:
        return self.instruction.called[0]

    @property
    def condition(self) -> Computation:
        return self.instruction.called[1]

    @cached_property
    def state(self) -> Instruction:
        """The parameter of the body."""
        return self.body.parameters[0]

    @property
    def init(self) -> Instruction:
        """The tuple the loop starts with."""
        return self.instruction.operands[0]

    @property
    def root(self) -> Instruction:
        """The tuple that a trip makes."""
        return self.body.root

    @property
    def size(self) -> int:
        """The number of elements the state has."""
        return len(self.root.operands)

    @cached_property
    def order(self) -> list[Instruction]:
        """The body in XLA's post-order, as it is when first asked for."""
        return post_order(self.body)

    @cached_property
    def position(self) -> dict[Instruction, int]:
        return {instruction: number for number, instruction in enumerate(self.order)}

    def element_of(self, value: Instruction) -> int | None:
        """The element of the state that the value is, as the body reads it."""
        if value.opcode is Opcode.GET_TUPLE_ELEMENT and value.operands[0] is self.state:
            return value.tuple_index
        return None

    def keeps(self, index: int) -> bool:
        """Whether each trip leaves that element of the state as it is."""
        return self.element_of(self.root.operands[index]) == index

    def reads(self, index: int) -> list[Instruction]:
        """The get-tuple-elements by which the body reads an element of the state. O(users of the
        state)."""
        return [read for read in self.state.users if read.tuple_index == index and read.users]

    def carry(self, first: list[Instruction]) -> None:
        """Let the loop start with `first`: what it started with, and what it is to carry besides.

        What is said of each element of its state, and of its trips, goes. The loop comes behind
        what it starts with. The root of the body is left to `follow`. O(elements + users of the
        state).
        """
        known = self.instruction.shape.elements
        shape = tuple_shape((*known, *(value.shape for value in first[len(known) :])))
        init = self.caller.add(Opcode.TUPLE, shape, first)
        self.instruction.set_operands([init])
        self.caller.move_to_end(self.instruction)
        for holder in (self.instruction, self.state, self.condition.parameters[0]):
            _give_shape(holder, shape)

    def follow(self, following: list[Instruction]) -> None:
        """Let each trip end with `following`. O(elements)."""
        self.root.set_operands(following)
        _give_shape(self.root, self.state.shape)


def _give_shape(holder: Instruction, shape: Shape) -> None:
    holder.set_shape(shape)
    for name in _ABOUT_THE_STATE.intersection(holder.attributes):
        holder.set_attribute(name, None)


_ABOUT_THE_STATE = frozenset(("backend_config", "origin", "parameter_replication", "sharding"))


def counted_loop(loop: Instruction, *, as_xla: bool = False) -> CountedLoop:
    """The loop, with what is proved of it. Raises NotPipelined, with `as_xla` also for loops whose
    trips XLA's pass does not count.

    O(condition + users of the state and of the result + what makes the counter).
    """
    body, condition = loop.called
    place = f"its loop %{loop.name}"
    if loop.operands[0].opcode is not Opcode.TUPLE:
        raise NotPipelined(f"{place} starts with %{loop.operands[0].name}, which is not a tuple")
    if body.root.opcode is not Opcode.TUPLE or body.root.users:
        raise NotPipelined(f"{place} has a body that does not end with a tuple")
    for whole in (body.parameters[0], condition.parameters[0], loop):
        for user in whole.users:
            if user.opcode is not Opcode.GET_TUPLE_ELEMENT:
                raise NotPipelined(
                    f"{place} has a state that %{user.name} uses as a whole, not by its elements"
                )
    effect = next(filter(has_effect, condition.instructions), None)
    if effect is not None:
        raise NotPipelined(f"{place} has a condition with a side effect, %{effect.name}")
    trips = loop_trips(loop)
    if trips.computed is None:
        stated = "" if trips.stated is None else "; known_trip_count is not believed"
        raise NotPipelined(f"the trip count of %{loop.name} is not proved: {trips.reason}{stated}")
    if trips.computed < 2:
        made = "one trip" if trips.computed else "no trip"
        raise NotPipelined(f"{place} makes {made}, two are needed")
    variable = trips.variable
    start = None if variable is None else initial_value(loop, variable.index)
    if variable is None or start is None or trips.last is None:
        raise NotPipelined(f"{place} has no counter that goes from constant to constant")
    if as_xla and (reason := _why_not_in_xla(trips, trips.computed, variable.step)):
        raise NotPipelined(f"{place} {reason} (trip_analysis=xla)")
    return CountedLoop(loop, variable.index, start, variable.step, trips.computed, as_xla)


def _why_not_in_xla(trips: LoopTrips, count: int, step: int) -> str:
    """The reason why XLA's pass leaves a loop alone; empty where it takes it."""
    compared = trips.comparison
    if compared is None or compared.offset or compared.direction not in _DIRECTIONS[step > 0]:
        return "compares its counter in a way that XLA's pass does not know"
    is_inclusive = compared.direction in ("LE", "GE")
    # Asked of the compiler: of `<=` it does not count the trip that ends at the limit.
    if count == 2 and is_inclusive and trips.last == (compared.limit or 0) + step:
        return "makes one trip by XLA's count, two are needed"
    return ""


_DIRECTIONS = {True: ("LT", "LE"), False: ("GT", "GE")}
"""Directions of comparisons, by whether the counter goes up."""
