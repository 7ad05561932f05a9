"""The instructions that can run once for all trips of a loop."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.analysis.loops.integers import wrap
from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.diagnostics import counted, with_article
from hloopt.ir.custom_targets import SUNK
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.passes.collectives.collective_pipeliner.counted_loop import CountedLoop, NotPipelined
from hloopt.passes.collectives.collective_pipeliner.effects import has_effect
from hloopt.passes.collectives.collective_pipeliner.moves import Move, Store, sliced_dimension
from hloopt.passes.collectives.collective_pipeliner.options import is_custom_call
from hloopt.passes.collectives.collective_pipeliner.progressions import Progressions

ELEMENTWISE = ELEMENTWISE_UNARY | ELEMENTWISE_BINARY | {Opcode.SELECT, Opcode.CLAMP}
SHAPE_ONLY = ELEMENTWISE | {
    *(Opcode.ALL_REDUCE, Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_BROADCAST, Opcode.RESHAPE),
}
SHIFTED = frozenset(
    (
        *(Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER, Opcode.ALL_TO_ALL, Opcode.CONCATENATE),
        *(Opcode.REDUCE, Opcode.BROADCAST, Opcode.TRANSPOSE, Opcode.SLICE, Opcode.PAD),
        *(Opcode.DYNAMIC_SLICE, Opcode.DYNAMIC_UPDATE_SLICE),
    )
)
"""Opcodes whose attributes or indices name dimensions."""
LAYOUT_CONSTRAINT = "LayoutConstraint"


def check_sink(move: Move, loop: CountedLoop, progressions: Progressions) -> None:
    """Whether a move can be sunk. Raises NotPipelined."""
    first = move.stores[0]
    for store in move.stores:
        _check_store(store, loop, progressions)
        if store.index != first.index:
            raise NotPipelined(
                f"%{store.instruction.name} does not store where %{first.instruction.name} does"
            )
    if move.waits_to_the_end:
        raise NotPipelined(f"%{first.buffer.name}, the buffer, is new in every trip")
    stacked = StackedValues(loop, move)
    for value in (*move.collectives, *move.formatting):
        if stacked.differs(value):
            _check_batch(value, stacked, progressions)
    for value in move.dependencies:
        if not value.shape.is_array or value.shape.is_dynamic:
            raise NotPipelined(f"%{value.name}, which its value is formatted with, is not an array")


def _check_store(store: Store, loop: CountedLoop, progressions: Progressions) -> None:
    name = store.instruction.name
    sizes, part = store.instruction.shape.dimensions, store.stored.shape.dimensions
    if store.dimension != 0:
        raise NotPipelined(f"%{name} does not store in slices of dimension 0")
    if sizes[0] != loop.trips:
        raise NotPipelined(f"%{name} has {sizes[0]} slices, its loop {counted(loop.trips, 'trip')}")
    if part != (1, *sizes[1:]):
        raise NotPipelined(f"%{name} does not store one whole slice")
    assert store.index is not None
    if abs(store.index.step) != 1:
        raise NotPipelined(f"%{name} does not store in neighboring slices")
    place = store.offset
    if sizes[0] != wrap(sizes[0], place):
        raise NotPipelined(f"%{place.name}, the index, cannot count all trips")


class StackedValues:
    """The values that differ from trip to trip."""

    def __init__(self, loop: CountedLoop, move: Move) -> None:
        self._loop = loop
        self._known: dict[Instruction, bool] = dict.fromkeys(move.collectives, True)

    def differs(self, value: Instruction) -> bool:
        """Whether a value may differ: it is computed from the state, or has a side effect.

        O(what it is computed from), once.
        """
        known = self._known
        path = [value]
        while path:
            current = path[-1]
            pending = [o for o in current.operands if o not in known]
            if current in known:
                path.pop()
            elif pending:
                path.append(pending[0])
            else:
                known[current] = (
                    current is self._loop.state
                    or has_own_side_effect(current)
                    or has_effect(current)
                    or any(known[o] for o in current.operands)
                )
        return known[value]


def _check_batch(value: Instruction, stacked: StackedValues, progressions: Progressions) -> None:
    """Whether an instruction can run on what all trips gave it. Raises NotPipelined."""
    place = f"%{value.name}"
    if not value.shape.is_array or value.shape.is_dynamic:
        raise NotPipelined(f"{place} does not give an array of a known size")
    if value.opcode in ELEMENTWISE:
        uneven = next((o for o in value.operands if o.shape.rank != value.shape.rank), None)
        if uneven is not None:
            raise NotPipelined(f"{place} takes the scalar %{uneven.name} for all its elements")
    elif value.opcode is Opcode.CUSTOM_CALL:
        if not is_custom_call(value, LAYOUT_CONSTRAINT) and not is_custom_call(value, SUNK):
            raise NotPipelined(f"{place} is a custom-call, which cannot run for all trips at once")
    elif value.opcode not in SHAPE_ONLY | SHIFTED:
        raise NotPipelined(
            f"{place} is {with_article(value.opcode)}, which cannot run for all trips at once"
        )
    if check := _SPECIAL.get(value.opcode):
        check(value, stacked, progressions)


def _check_scalars(value: Instruction, stacked: StackedValues, _progressions: Progressions) -> None:
    """A reduce or pad of one array, with one scalar for all trips."""
    if len(value.operands) != 2 or stacked.differs(value.operands[1]):
        raise NotPipelined(f"%{value.name} starts from %{value.operands[-1].name} in each trip")


def _check_slice(value: Instruction, stacked: StackedValues, _progressions: Progressions) -> None:
    indices = value.operands[1:]
    if len(indices) != value.shape.rank or any(map(stacked.differs, indices)):
        raise NotPipelined(f"%{value.name} slices at another place in each trip")


def _check_inner_store(
    store: Instruction, _stacked: StackedValues, progressions: Progressions
) -> None:
    """A store into part of what a trip formats, which becomes a scatter for all trips."""
    dimension = sliced_dimension(store)
    assert dimension is not None, "else it is not a formatting"
    sizes = list(store.shape.dimensions)
    room = sizes[dimension] - 1
    sizes[dimension] = 1
    offset = store.operands[2 + dimension]
    index = progressions.of(offset)
    if store.operands[1].shape.dimensions != tuple(sizes):
        raise NotPipelined(f"%{store.name} does not store one whole slice")
    if index is None or not 0 <= index.first <= room or not 0 <= progressions.last(index) <= room:
        raise NotPipelined(f"index %{offset.name} of %{store.name} is not known to be inside")


_SPECIAL: dict[Opcode, Callable[[Instruction, StackedValues, Progressions], None]] = {
    Opcode.REDUCE: _check_scalars,
    Opcode.PAD: _check_scalars,
    Opcode.DYNAMIC_SLICE: _check_slice,
    Opcode.DYNAMIC_UPDATE_SLICE: _check_inner_store,
}
