"""Advice carried out on a module, so that its memory can be counted again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hloopt.analysis.flat_schedule import FlatSchedule
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.clone import own_computations
from hloopt.memory.advice.model import Rematerialization

_PASSES_ON = (Opcode.GET_TUPLE_ELEMENT, Opcode.BITCAST, Opcode.TUPLE, Opcode.OPT_BARRIER)


def compute_again(module: Module, found: Sequence[Rematerialization]) -> None:
    """Copy each instruction to where it is needed again, and let what comes later use the copy."""
    schedule = FlatSchedule.of(module)
    definers = {(i.parent.name, i.name): i for i in schedule.steps}
    copies: dict[Instruction, list[Instruction]] = {}
    for item in sorted(found, key=lambda item: item.idle[1]):
        original = definers[item.buffer.computation, item.buffer.name.partition("{")[0]]
        anchor = _in_computation(schedule, original.parent, schedule.steps[item.idle[1]])
        _copy_before(original, anchor, copies)


def _in_computation(
    schedule: FlatSchedule, computation: Computation, instruction: Instruction
) -> Instruction:
    while instruction.parent is not computation:
        instruction = schedule.first_call[instruction.parent]
    return instruction


def _copy_before(
    original: Instruction, anchor: Instruction, copies: dict[Instruction, list[Instruction]]
) -> None:
    computation = original.parent
    place = {i: number for number, i in enumerate(computation.instructions)}
    late = place[anchor]
    added: list[Instruction] = []

    def copy_of(source: Instruction, operands: Sequence[Instruction]) -> Instruction:
        copy = computation.add_clone(source, operands)
        own_computations(copy)
        copies.setdefault(source, []).append(copy)
        added.append(copy)
        return copy

    waiting = [(original, copy_of(original, original.operands))]
    while waiting:
        source, copy = waiting.pop()
        for old in (source, *copies.get(source, [])[:-1]):
            for user in list(old.users):
                if user in added:
                    continue
                if place[user] >= late:
                    for number, operand in enumerate(user.operands):
                        if operand is old:
                            user.replace_operand(number, copy)
                elif user.opcode is Opcode.TUPLE and not _is_read_whole(user, place, late):
                    waiting += [(element, copy) for element in _elements(user, old)]
                elif user.opcode in _PASSES_ON and any(_late_readers(user, place, late)):
                    operands = [copy if operand is old else operand for operand in user.operands]
                    waiting.append((user, copy_of(user, operands)))
    computation.splice({anchor: added})
    for instruction in reversed(list(computation.instructions)):  # nobody takes them any more
        if instruction.opcode in _PASSES_ON and not instruction.users and not instruction.is_root:
            computation.remove(instruction)


def _elements(whole: Instruction, part: Instruction) -> Iterator[Instruction]:
    """What takes `part` out of a tuple again, also behind a barrier."""
    for user in whole.users:
        if user.opcode is Opcode.OPT_BARRIER:
            yield from (u for u in user.users if whole.operands[u.tuple_index] is part)
        elif user.opcode is Opcode.GET_TUPLE_ELEMENT and whole.operands[user.tuple_index] is part:
            yield user


def _is_read_whole(whole: Instruction, place: dict[Instruction, int], late: int) -> bool:
    """Whether something late takes all of a tuple, as a loop does."""
    return any(
        place[user] >= late and user.opcode is not Opcode.GET_TUPLE_ELEMENT for user in whole.users
    )


def _late_readers(
    instruction: Instruction, place: dict[Instruction, int], late: int
) -> Iterator[Instruction]:
    waiting = [instruction]
    while waiting:
        for user in waiting.pop().users:
            if place[user] >= late:
                yield user
            elif user.opcode in _PASSES_ON:
                waiting.append(user)
