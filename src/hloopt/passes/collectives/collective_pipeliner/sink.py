"""Moving instructions of a loop to after the loop, where they run once for all trips."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from hloopt.ir.attributes.values import format_ints
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, array_shape
from hloopt.ir.tuples import make_tuple, read_element
from hloopt.passes.collectives.collective_pipeliner.batching import Batch, stacked_shape
from hloopt.passes.collectives.collective_pipeliner.copies import (
    Copier,
    constant_zero,
    discard,
    integer,
)
from hloopt.passes.collectives.collective_pipeliner.counted_loop import CountedLoop
from hloopt.passes.collectives.collective_pipeliner.markers import mark_sunk
from hloopt.passes.collectives.collective_pipeliner.moves import Move, Store, behind_barrier
from hloopt.passes.collectives.collective_pipeliner.options import PipelinerOptions
from hloopt.passes.collectives.collective_pipeliner.progressions import Progression
from hloopt.passes.collectives.collective_pipeliner.sink_rules import StackedValues


@dataclass(slots=True)
class _Stacks:
    """Moves that store at the same places, and the values of the body they take."""

    moves: list[Move] = field(default_factory=list)
    stacked: dict[Instruction, int] = field(default_factory=dict)
    """Values that are stacked, with the elements of the state that hold the stacks."""
    same: dict[Instruction, int] = field(default_factory=dict)
    """Values that all trips have, with the elements that hold them."""
    constants: list[Instruction] = field(default_factory=list)


class Sinking:
    """Lets a loop stack what it moves, and moves it once, after the loop.

    Body and condition, which nothing else calls, are changed in place.
    """

    def __init__(
        self,
        loop: CountedLoop,
        moves: Sequence[Move],
        options: PipelinerOptions,
        copier: Copier,
    ) -> None:
        self._loop = loop
        self._copier = copier
        self._options = options
        self._stacks: dict[Progression | None, _Stacks] = {}
        for move in moves:
            self._stacks.setdefault(move.stores[0].index, _Stacks()).moves.append(move)

    def apply(self) -> list[Instruction]:
        """Change the loop; returns all that was moved. O(body + users of state and result)."""
        loop, place = self._loop, self._loop.position.__getitem__
        reads = list(loop.instruction.users)
        shapes = self._lay_out()
        loop.carry([*loop.init.operands, *_zeros(loop.caller, shapes)])
        gone = self._stack_in_body()
        moved: list[Instruction] = []
        results: dict[int, Instruction] = {}
        for stacks in self._stacks.values():
            batch = self._batch(stacks)
            for move in stacks.moves:
                inside = sorted((*move.collectives, *move.formatting), key=place)
                made = {instruction: batch.add(instruction) for instruction in inside}
                moved += made.values()
                for collective in move.collectives:
                    self._copier.renew_channel(made[collective])
                for store in move.stores:
                    results[store.output] = self._result(store, batch.add(store.stored))
        discard([i for i in sorted(gone, key=place) if not self._options.leaves_behind(i)])
        size = len(loop.root.operands) - len(shapes)
        result = make_tuple(
            loop.caller, [results.get(i) or read_element(loop.instruction, i) for i in range(size)]
        )
        for user in reads:
            user.set_operands([result])
        if loop.instruction.is_root:
            loop.caller.set_root(result)
        return moved

    def _lay_out(self) -> list[Shape]:
        """Choose what else the loop carries; the shapes of that."""
        loop = self._loop
        shapes: list[Shape] = []
        for stacks in self._stacks.values():
            for move in stacks.moves:
                inside = {*move.collectives, *move.formatting}
                inputs = [o for c in move.collectives for o in c.operands if o not in inside]
                differing = StackedValues(loop, move)
                for value in (*inputs, *move.dependencies):
                    if value in stacks.stacked or value in stacks.same:
                        continue
                    element = loop.size + len(shapes)
                    if value in inputs or differing.differs(value):
                        stacks.stacked[value] = element
                        shapes.append(stacked_shape(value.shape, loop.trips))
                    elif value.opcode is Opcode.CONSTANT:
                        stacks.constants.append(value)
                    else:
                        stacks.same[value] = element
                        shapes.append(value.shape)
        return shapes

    # -- in the loop ------------------------------------------------------------------------

    def _stack_in_body(self) -> set[Instruction]:
        """Let each trip stack what is moved, and store nothing; returns what is not needed then."""
        loop = self._loop
        following = list(loop.root.operands)
        gone: set[Instruction] = set()
        carried: dict[int, Instruction] = {}
        for stacks in self._stacks.values():
            place = stacks.moves[0].stores[0].offset
            for value, element in stacks.stacked.items():
                carried[element] = self._stack(value, element, place)
            carried |= {element: value for value, element in stacks.same.items()}
            for move in stacks.moves:
                gone.update((*move.collectives, *move.through))
                for store in move.stores:
                    following[store.output] = behind_barrier(store.buffer)
                    gone.add(store.instruction)
        loop.follow([*following, *(carried[element] for element in sorted(carried))])
        return gone

    def _stack(self, value: Instruction, element: int, place: Instruction) -> Instruction:
        """The stack after a trip that made `value`."""
        body = self._loop.body
        stack = read_element(self._loop.state, element)
        part = body.add(Opcode.RESHAPE, stacked_shape(value.shape, 1), [value])
        if not self._options.last_run:
            part = mark_sunk(part)
        zero = constant_zero(body, place.shape)
        operands = [stack, part, place, *[zero] * value.shape.rank]
        return body.add(Opcode.DYNAMIC_UPDATE_SLICE, stack.shape, operands)

    # -- after the loop ---------------------------------------------------------------------

    def _batch(self, stacks: _Stacks) -> Batch:
        after = self._loop.instruction
        stacked = {value: read_element(after, element) for value, element in stacks.stacked.items()}
        same = {value: read_element(after, element) for value, element in stacks.same.items()}
        same |= {value: after.parent.add_clone(value, []) for value in stacks.constants}
        return Batch(after.parent, self._loop.trips, stacked, same)

    def _result(self, store: Store, value: Instruction) -> Instruction:
        """The buffer after the loop, with what all trips store."""
        loop, after, shape = self._loop, self._loop.caller, store.instruction.shape
        if value.shape is not shape:
            value = after.add(Opcode.RESHAPE, shape, [value])
        assert store.index is not None
        ends = (store.index.first, store.index.first + store.index.step * (loop.trips - 1))
        first, last = (min(max(end, 0), loop.trips - 1) for end in sorted(ends))
        if last - first == loop.trips - 1:
            return value
        # Stores outside of the buffer are moved to its end: some slices keep what they were.
        part = array_shape(
            shape.type_name, (last - first + 1, *shape.dimensions[1:]), (), shape.layout
        )
        limits = [f"[{first}:{last + 1}]", *(f"[0:{size}]" for size in shape.dimensions[1:])]
        written = after.add(
            Opcode.SLICE, part, [value], attributes={"slice": f"{{{', '.join(limits)}}}"}
        )
        zero = constant_zero(after, store.offset.shape)
        offsets = [integer(zero, first), *[zero] * (shape.rank - 1)]
        buffer = read_element(loop.instruction, store.output)
        return after.add(Opcode.DYNAMIC_UPDATE_SLICE, shape, [buffer, written, *offsets])


def _zeros(parent: Computation, shapes: Iterable[Shape]) -> list[Instruction]:
    """A new array of zeros for each shape."""
    scalars: dict[str, Instruction] = {}
    zeros: list[Instruction] = []
    for shape in shapes:
        kind = shape.type_name
        if kind not in scalars:
            scalars[kind] = constant_zero(parent, array_shape(kind))
        attributes = {"dimensions": format_ints(())}
        zeros.append(parent.add(Opcode.BROADCAST, shape, [scalars[kind]], attributes=attributes))
    return zeros
