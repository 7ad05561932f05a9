"""The instructions of a loop that can be moved into the trip before, and what they are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.passes.collectives.collective_pipeliner.counted_loop import CountedLoop, NotPipelined
from hloopt.passes.collectives.collective_pipeliner.effects import has_effect
from hloopt.passes.collectives.collective_pipeliner.options import PipelinerOptions, allows
from hloopt.passes.collectives.collective_pipeliner.uses import check_control_dependencies


@dataclass(frozen=True, slots=True, eq=False)
class Chain:
    """An instruction with all it is computed from, up to the loop's state."""

    moved: Instruction
    members: list[Instruction]
    """Operands first; without the instruction itself."""


def backward_chains(
    loop: CountedLoop,
    candidates: Iterable[Instruction],
    options: PipelinerOptions,
    missed: dict[Instruction, str],
) -> list[Chain]:
    """The instructions to move backward, in the order of the body; adds to `missed` why others
    stay.

    O(what the candidates are computed from).
    """
    chains: list[Chain] = []
    for candidate in candidates:
        if options.has_enough(len(chains)):
            missed[candidate] = "max_pipelining_per_loop is reached"
            continue
        try:
            chains.append(_chain_of(candidate, loop, options))
        except NotPipelined as reason:
            missed[candidate] = str(reason)
    return chains


def _chain_of(moved: Instruction, loop: CountedLoop, options: PipelinerOptions) -> Chain:
    if moved is loop.state or moved is loop.root:
        raise NotPipelined("it is the whole state of its loop")
    if not options.should_allow_control_dependencies:
        check_control_dependencies(
            moved, hint=": should_allow_control_dependencies would drop that"
        )
    start = options.finds_chain_start(moved)
    members: dict[Instruction, None] = {}
    waiting = list(moved.operands)
    if start is not None and start is not moved:
        waiting.append(start)
    while waiting:
        value = waiting.pop()
        if value in members or value is loop.state or value is moved:
            continue
        _check_member(value, loop, options)
        members[value] = None
        waiting += value.operands
    chain = Chain(moved, sorted(members, key=loop.position.__getitem__))
    inside = {moved, *members}
    staying: set[Instruction] = set()
    for value in reversed(chain.members):
        outside = next((user for user in value.users if user not in inside), None)
        reader = outside or next((user for user in value.users if user in staying), None)
        if reader is not None:
            _check_runs_twice(value, reader)
            staying.add(value)
        if outside is not None:
            _check_shared(value, outside, loop, options)
    return chain


def _check_member(value: Instruction, loop: CountedLoop, options: PipelinerOptions) -> None:
    if value.opcode is Opcode.RECV_DONE:
        raise NotPipelined(f"it is computed from what %{value.name} receives")
    index = loop.element_of(value)
    if index is not None and not _may_read(value, index, loop, options):
        raise NotPipelined(
            f"it is computed from element {index} of the state, %{value.name}, which changes from "
            "trip to trip"
        )


def _may_read(value: Instruction, index: int, loop: CountedLoop, options: PipelinerOptions) -> bool:
    """Whether what is moved may be computed from an element of the state."""
    return (
        index == loop.counter
        or loop.keeps(index)
        or _is_one_number(value)
        or allows(options.should_allow_loop_variant_parameter_in_chain, value)
    )


def _check_runs_twice(value: Instruction, reader: Instruction) -> None:
    """Whether a value may be computed where it is too, for what stays there and reads it."""
    if value.opcode is not Opcode.AFTER_ALL and has_effect(value):
        raise NotPipelined(f"%{reader.name} reads %{value.name} too, which has a side effect")


def _check_shared(
    value: Instruction, reader: Instruction, loop: CountedLoop, options: PipelinerOptions
) -> None:
    """Whether what is outside of the chain may read a value of it."""
    if value.opcode is Opcode.AFTER_ALL:
        return
    is_state = loop.element_of(value) is not None
    if not (is_state or _is_one_number(value) or options.should_add_loop_invariant_op_in_chain):
        raise NotPipelined(
            f"%{reader.name} reads %{value.name} too, which it is computed from, and "
            "should_add_loop_invariant_op_in_chain is off"
        )


def _is_one_number(value: Instruction) -> bool:
    return value.shape.is_array and value.shape.element_count() == 1
