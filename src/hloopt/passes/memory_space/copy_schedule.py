"""The schedule with new copies in it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hloopt.ir import Computation, Instruction
from hloopt.memory_space.program import TRIVIAL, Program
from hloopt.passes.memory_space.insert_copies import CopyPair


def schedule_copies(program: Program, pairs: Iterable[CopyPair]) -> None:
    """Put copies, and what was made with them, into the order of their computations.

    At one time stand the instruction that was there, the dones that are due before the next one,
    and the starts. What was made beside the copies stands before what first reads it. Linear.
    """
    steps = program.schedule.steps
    starts: dict[int, list[Instruction]] = {}
    dones: dict[int, list[Instruction]] = {}
    ordered = sorted(pairs, key=lambda p: (p.is_prefetch, p.done_before, p.start_after))
    for pair in ordered:
        after = pair.start_after
        while 0 <= after < len(steps) and steps[after].parent is not pair.start.parent:
            after += 1
        starts.setdefault(after, []).append(pair.start)
        dones.setdefault(pair.done_before, []).append(pair.done)
    moved = {half for pair in ordered for half in (pair.start, pair.done)}
    emitted: dict[Computation, dict[Instruction, None]] = {}
    for time in range(-1, len(steps) + 1):
        if 0 <= time < len(steps) and steps[time] not in moved and not _waits(steps[time], emitted):
            _emit(steps[time], emitted)
        for instruction in (*dones.get(time + 1, ()), *starts.get(time, ())):
            _emit(instruction, emitted)
    for computation, order in emitted.items():
        for instruction in list(computation.instructions):
            _emit(instruction, emitted)
        if list(order) != list(computation.instructions):
            computation.reorder(order)


def _waits(step: Instruction, emitted: dict[Computation, dict[Instruction, None]]) -> bool:
    """Whether a step that only passes on what it reads stands before its operand's copy."""
    if step.opcode not in TRIVIAL or step.is_root:
        return False
    order = emitted.get(step.parent, {})
    return any(operand not in order for operand in step.operands)


def _emit(last: Instruction, emitted: dict[Computation, dict[Instruction, None]]) -> None:
    """Append an instruction, its operands before it where they have no place yet."""
    if last not in last.parent:
        return  # nothing read it any more
    order = emitted.setdefault(last.parent, {})
    stack: list[tuple[Instruction, Sequence[Instruction]]] = [(last, last.operands)]
    while stack:
        instruction, operands = stack.pop()
        if instruction in order:
            continue
        missing = [operand for operand in operands if operand not in order]
        if missing:
            stack.append((instruction, ()))
            stack += [(operand, operand.operands) for operand in reversed(missing)]
        else:
            order[instruction] = None
