"""Moving instructions of a loop into the next trip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape, compatible
from hloopt.ir.tuples import read_element
from hloopt.passes.collectives.collective_pipeliner.copies import (
    Copier,
    Copies,
    constant_zero,
    discard,
    metadata_of,
    replace_results,
)
from hloopt.passes.collectives.collective_pipeliner.counted_loop import CountedLoop
from hloopt.passes.collectives.collective_pipeliner.effects import has_effect
from hloopt.passes.collectives.collective_pipeliner.markers import mark_moved
from hloopt.passes.collectives.collective_pipeliner.moves import Move, Store, behind_barrier
from hloopt.passes.collectives.collective_pipeliner.options import PipelinerOptions
from hloopt.passes.rewriting.slice_places import leave_loop, restate_slices


@dataclass(slots=True)
class _Carried:
    """The values that the loop carries in addition: values of the body, by their element."""

    first: int
    values: list[Instruction] = field(default_factory=list)
    offsets: dict[Instruction, int] = field(default_factory=dict)
    """Elements with indices of stores."""
    operands: dict[Move, int] = field(default_factory=dict)
    """Elements with operands of what is moved, where these do not wait in its buffer."""
    dependencies: dict[Move, dict[Instruction, int]] = field(default_factory=dict)
    """Elements with what formatting reads."""

    @classmethod
    def of(cls, loop: CountedLoop, moves: Sequence[Move]) -> _Carried:
        """The values to carry, in the order of XLA: indices, operands, then the rest."""
        carried = cls(loop.size)
        for move in moves:
            for store in move.stores:
                if store.dimension is not None and store.offset not in carried.offsets:
                    carried.offsets[store.offset] = carried.add(store.offset)
        for move in moves:
            if not move.reuses_buffer:
                carried.operands[move] = carried.add(move.collectives[0].operands[0])
        for move in moves:
            carried.dependencies[move] = {o: carried.add(o) for o in move.dependencies}
        return carried

    def add(self, value: Instruction) -> int:
        """Carry a value too; its element."""
        self.values.append(value)
        return self.first + len(self.values) - 1


class ForwardPipelining:
    """Lets each trip of a loop, and what follows the loop, finish what the trip before began.

    The first trip is peeled off and finishes nothing. Body and condition, which nothing else
    calls, are changed in place.
    """

    def __init__(
        self,
        loop: CountedLoop,
        moves: Sequence[Move],
        options: PipelinerOptions,
        copier: Copier,
    ) -> None:
        self._loop = loop
        self._moves = moves
        self._copier = copier
        self._options = options
        self._carried = _Carried.of(loop, moves)

    def apply(self) -> list[Instruction]:
        """Change the loop; returns all that was moved, in the loop and after it.

        O(body + users of the state and of the result).
        """
        loop = self._loop
        values = self._carried.values
        peeled = self._peel()
        first = [peeled[value] for value in (*loop.root.operands, *values)]
        self._keep_before_loop(peeled, first)
        for move in self._moves:
            (store,) = move.stores
            is_own = loop.element_of(behind_barrier(store.buffer)) == store.output
            if is_own and not move.reuses_buffer:
                first[store.output] = loop.init.operands[store.output]
        loop.carry(first)
        loop.follow([*loop.root.operands, *values])
        reads = list(loop.instruction.users)
        moved: list[Instruction] = []
        results: dict[int, Instruction] = {}
        for move in self._moves:
            (store,) = move.stores
            inside, result = self._finish_inside(move, store)
            moved += inside
            if _is_needed(move, store, reads) or loop.instruction.is_root:
                after, results[store.output] = self._finish_after(move, store)
                moved += after
            self._replace_inside(move, store, result)
        replace_results(loop.instruction, reads, results, self._carried.first)
        restate_slices((i for i in loop.order if i in loop.body), later=1, factor=1)
        return moved

    # -- the first trip ---------------------------------------------------------------------

    def _peel(self) -> Copies:
        """Copy the body for the first trip, which only prepares what is moved."""
        loop, copier = self._loop, self._copier
        copies: Copies = {loop.state: loop.init}
        skipped = {i for move in self._moves for i in (*move.collectives, *move.through)}
        skipped |= {loop.state, loop.root}
        stores = {store.instruction: (move, store) for move in self._moves for store in move.stores}
        needed = [instruction for instruction in loop.order if instruction not in skipped]
        made: list[Instruction] = []
        for instruction in needed:
            move, store = stores.get(instruction, (None, None))
            if move is None or store is None:
                made.append(copier.copy_in_order(instruction, copies, loop.caller))
            elif move.reuses_buffer:
                copies[store.stored] = copies[move.collectives[0].operands[0]]
                made.append(copier.copy_in_order(instruction, copies, loop.caller))
            else:
                copies[instruction] = copies[store.buffer]
        copier.regroup(made, copier.new_groups(needed))
        leave_loop(made)
        return copies

    def _keep_before_loop(self, peeled: Copies, first: Sequence[Instruction]) -> None:
        """Let the loop wait for effects of the first trip that nothing it starts with waits for."""
        loop = self._loop
        waited_for = set(first)
        for original in reversed(loop.order):
            copy = peeled.get(original)
            if copy is None:
                continue
            if copy not in waited_for and has_effect(original):
                loop.instruction.add_control_predecessor(copy)
                waited_for.add(copy)
            if copy in waited_for:
                waited_for.update(copy.operands, copy.control_predecessors)

    # -- the other trips --------------------------------------------------------------------

    def _finish_inside(self, move: Move, store: Store) -> tuple[list[Instruction], Instruction]:
        """Finish in a trip what the trip before began: the copies, and what the trip results in."""
        if move.waits_to_the_end:
            return [], store.buffer
        copies, result = self._finish(move, store, self._loop.state, store.buffer)
        if move.reuses_buffer:
            own = move.collectives[0].operands[0]
            result = _store_at(store, result, own, _offsets(store, store.offset))
        return list(copies.values()), result

    def _replace_inside(self, move: Move, store: Store, result: Instruction) -> None:
        old = store.instruction
        old.move_control_dependencies_to(result)
        old.replace_all_uses_with(result)
        moved = sorted((*move.collectives, *move.through), key=self._loop.position.__getitem__)
        discard([*(i for i in moved if not self._options.leaves_behind(i)), old])

    def _finish_after(self, move: Move, store: Store) -> tuple[list[Instruction], Instruction]:
        """Finish what the last trip began: the copies, and what the loop results in."""
        after = self._loop.instruction
        index = store.output if store.dimension is not None else store.buffer.tuple_index
        copies, result = self._finish(move, store, after, read_element(after, index))
        made = list(copies.values())
        self._copier.regroup(made, {})
        leave_loop(made, trip=self._loop.trips - 1)
        return made, result

    def _finish(
        self, move: Move, store: Store, state: Instruction, buffer: Instruction
    ) -> tuple[Copies, Instruction]:
        """Copies of what is moved, for the trip before, which left `state`, and their store."""
        copier, parent = self._copier, state.parent
        place: list[Instruction] = []
        if store.dimension is not None:
            offset = read_element(state, self._carried.offsets[store.offset])
            is_inside = state is self._loop.state
            place = _offsets(store, self._marked(offset) if is_inside else offset)
        values: Copies = {
            value: read_element(state, number)
            for value, number in self._carried.dependencies[move].items()
        }
        (collective,) = move.collectives
        copies: Copies = {}
        operand = self._operand(move, state, buffer, place)
        copies[collective] = copier.copy(collective, [operand], parent)
        copier.renew_channel(copies[collective])
        values[collective] = self._marked(copies[collective])
        for value in move.formatting:
            copies[value] = copier.copy(value, [values[o] for o in value.operands], parent)
            values[value] = copies[value]
        if store.dimension is None:
            operands = [*(values[o] for o in store.instruction.operands[:-1]), buffer]
            return copies, copier.copy(store.instruction, operands, parent)
        return copies, _store_at(store, buffer, values[store.stored], place)

    def _operand(
        self, move: Move, state: Instruction, buffer: Instruction, place: Sequence[Instruction]
    ) -> Instruction:
        """The values that the trip before left to be moved."""
        if not move.reuses_buffer:
            return read_element(state, self._carried.operands[move])
        shape = move.collectives[0].operands[0].shape
        if compatible(shape, buffer.shape):
            return buffer
        sizes = ",".join(map(str, shape.dimensions))
        return state.parent.add(
            Opcode.DYNAMIC_SLICE,
            shape,
            [buffer, *place],
            attributes={"dynamic_slice_sizes": f"{{{sizes}}}"},
        )

    def _marked(self, value: Instruction) -> Instruction:
        """The value, marked where a later round will look for it."""
        options = self._options
        return value if options.last_run else mark_moved(value, options.level_to_operate_on + 1)


def _is_needed(move: Move, store: Store, reads: Sequence[Instruction]) -> bool:
    """Whether what the last trip began has to be finished: its result is read, or has effects."""
    is_read = any(read.tuple_index == store.output for read in reads)
    return is_read or store.dimension is None or any(map(has_effect, move.collectives))


def _store_at(
    store: Store, buffer: Instruction, value: Instruction, place: Sequence[Instruction]
) -> Instruction:
    """A store like another one, at another place."""
    return buffer.parent.add(
        Opcode.DYNAMIC_UPDATE_SLICE,
        store.instruction.shape,
        [buffer, value, *place],
        attributes=metadata_of(store.instruction),
    )


def _offsets(store: Store, offset: Instruction) -> list[Instruction]:
    """The indices of a store at another offset: the others are zeros."""
    zeros: dict[Shape, Instruction] = {}
    offsets = list(store.instruction.operands[2:])
    for dimension, old in enumerate(offsets):
        if dimension == store.dimension:
            offsets[dimension] = offset
            continue
        if old.shape not in zeros:
            zeros[old.shape] = constant_zero(offset.parent, old.shape)
        offsets[dimension] = zeros[old.shape]
    return offsets
