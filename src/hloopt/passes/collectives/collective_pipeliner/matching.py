"""The instructions of a loop that can be moved forward, and those that go with them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hloopt.diagnostics import counted
from hloopt.ir.instruction import Instruction
from hloopt.ir.shapes.shape import compatible
from hloopt.passes.collectives.collective_pipeliner.counted_loop import CountedLoop, NotPipelined
from hloopt.passes.collectives.collective_pipeliner.moves import (
    Move,
    Store,
    behind_barrier,
    trace_store,
    trace_token,
)
from hloopt.passes.collectives.collective_pipeliner.options import PipelinerOptions, allows
from hloopt.passes.collectives.collective_pipeliner.progressions import Progressions
from hloopt.passes.collectives.collective_pipeliner.sink_rules import check_sink
from hloopt.passes.collectives.collective_pipeliner.uses import check_control_dependencies, uses_of


def forward_moves(
    loop: CountedLoop,
    candidates: Iterable[Instruction],
    options: PipelinerOptions,
    missed: dict[Instruction, str],
) -> list[Move]:
    """The moves, forward or sinking, of candidates in the order of the body.

    Adds to `missed` why the others stay. O(what the candidates' values go through).
    """
    progressions = Progressions(loop, with_lags=options.level_to_operate_on > 0)
    is_sink = options.pipelining_direction == "forward-sink"
    moves: list[Move] = []
    mover: dict[Instruction, Move] = {}
    for candidate in candidates:
        if options.has_enough(len(moves)):
            missed[candidate] = "max_pipelining_per_loop is reached"
            continue
        try:
            move = _move_of(candidate, loop, progressions, options)
            if is_sink:
                check_sink(move, loop, progressions)
        except NotPipelined as reason:
            missed[candidate] = str(reason)
            continue
        others = dict.fromkeys(mover[s.instruction] for s in move.stores if s.instruction in mover)
        if others:
            move = _merged([*others, move], loop, is_sink=is_sink)
            moves = [m for m in moves if m not in others]
        moves.append(move)
        mover.update((store.instruction, move) for store in move.stores)
    return moves


def _move_of(
    moved: Instruction, loop: CountedLoop, progressions: Progressions, options: PipelinerOptions
) -> Move:
    if len(moved.operands) != 1:
        raise NotPipelined(f"it has {counted(len(moved.operands), 'operand')}, not one")
    if moved.operands[0] is loop.state:
        raise NotPipelined(
            "it reads the whole state of the loop, which cannot hold itself for the next trip"
        )
    check_control_dependencies(moved)
    if len(moved.users) != 1 and not options.pipeline_use_tree:
        raise NotPipelined("it has several users, and pipeline_use_tree is off")
    uses = uses_of(moved, loop, options)
    is_sink = options.pipelining_direction == "forward-sink"
    if not is_sink and len(uses.ends) > 1:
        names = " and ".join(f"%{end.name}" for end in uses.ends[:2])
        raise NotPipelined(f"its value is stored more than once, by {names}")
    if is_sink and uses.tokens:
        raise NotPipelined(f"%{uses.tokens[0].name} makes a token of it in every trip")
    stores = [trace_store(loop, progressions, s, options.level_to_operate_on) for s in uses.stores]
    stores += [trace_token(loop, token) for token in uses.tokens]
    waits_to_the_end = _starts_anew(loop, stores[0])
    may_wait_in_buffer = (
        bool(uses.stores)
        and options.level_to_operate_on == 0
        and not waits_to_the_end
        and compatible(moved.operands[0].shape, stores[0].stored.shape)
    )
    move = Move(
        [moved],
        uses.formatting,
        stores,
        uses.copied,
        may_wait_in_buffer and allows(options.reuse_pipelined_op_buffer, moved),
        waits_to_the_end,
    )
    if not options.process_different_sized_ops and uses.stores:
        _check_sizes(move)
    return move


def _starts_anew(loop: CountedLoop, store: Store) -> bool:
    """Whether each trip stores in a new buffer, so that only the last trip's value is kept."""
    return store.dimension is not None and loop.element_of(behind_barrier(store.buffer)) is None


def _check_sizes(move: Move) -> None:
    (moved,) = move.collectives
    stored = move.stores[0].stored
    if not compatible(moved.operands[0].shape, stored.shape):
        raise NotPipelined(
            f"%{stored.name} has another shape than its operand, and "
            "process_different_sized_ops is off"
        )
    for value in move.dependencies:
        if value.shape.is_array and value.shape.element_count() == 1:
            raise NotPipelined(
                f"%{value.name}, which its value is formatted with, is a scalar, and "
                "process_different_sized_ops is off"
            )


def _merged(moves: Sequence[Move], loop: CountedLoop, *, is_sink: bool) -> Move:
    """One move of several that have stores in common.

    Sunk, it has several collectives; forward, all but the first are formatting of the first.
    """
    first = moves[0]
    collectives = dict.fromkeys(c for move in moves for c in move.collectives)
    kept = collectives if is_sink else dict.fromkeys(first.collectives)
    formatting = {*collectives, *(f for move in moves for f in move.formatting)} - kept.keys()
    through = {*collectives, *(f for move in moves for f in move.through)}
    stores = {store.instruction: store for move in moves for store in move.stores}
    return Move(
        list(kept),
        sorted(formatting, key=loop.position.__getitem__),
        list(stores.values()),
        frozenset().union(*(move.copied for move in moves)) - through,
        first.reuses_buffer,
        first.waits_to_the_end,
    )
