"""XLA:GPU's changes to the order that a memory scheduler found: room between starts and dones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from hloopt.analysis.async_operations import OWN_DONES, OWN_STARTS, SYNC_COLLECTIVES, wrapped
from hloopt.ir import Instruction, Opcode
from hloopt.ir.attributes.backend_config import is_sync

_COLLECTIVE_STARTS = frozenset(s for s, kind in OWN_STARTS.items() if kind in SYNC_COLLECTIVES)
_COLLECTIVE_DONES = frozenset(d for d, kind in OWN_DONES.items() if kind in SYNC_COLLECTIVES)

_Neighbours = Callable[[Instruction], Iterable[Instruction]]


def arrange_for_gpu(order: Sequence[Instruction]) -> list[Instruction]:
    """The order with asynchronous starts as early and dones as late as their neighbours allow.

    Synchronous starts come right before their dones. A start follows at once what completes its
    operands, a done stands right before the first that needs it. O(edges).
    """
    order = _pulled(_with_sync_pairs(order), _after, _before, _is_early)
    order.reverse()
    order = _pulled(order, _before, _after, _is_late)
    order.reverse()
    return order


def _with_sync_pairs(order: Sequence[Instruction]) -> list[Instruction]:
    result: list[Instruction] = []
    for instruction in order:
        if is_sync(instruction) and _starts_collective(instruction):
            continue
        if _is_done(instruction) and instruction.operands:
            start = instruction.operands[0]
            if is_sync(start) and _starts_collective(start):
                result.append(start)
        result.append(instruction)
    return result


def _pulled(
    order: Iterable[Instruction],
    ahead: _Neighbours,
    behind: _Neighbours,
    is_wanted: Callable[[Instruction], bool],
) -> list[Instruction]:
    """The order, each instruction followed by what is wanted `ahead` of it and needs no more."""
    placed: dict[Instruction, None] = {}
    for instruction in order:
        if instruction in placed:
            continue
        placed[instruction] = None
        for neighbour in ahead(instruction):
            if is_wanted(neighbour) and all(other in placed for other in behind(neighbour)):
                placed.setdefault(neighbour)
    return list(placed)


def _after(instruction: Instruction) -> Iterable[Instruction]:
    return (*instruction.users, *instruction.control_successors)


def _before(instruction: Instruction) -> Iterable[Instruction]:
    return (*instruction.operands, *instruction.control_predecessors)


def _is_early(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    if opcode in _COLLECTIVE_STARTS:
        return not is_sync(instruction)
    return opcode is Opcode.ASYNC_START or _asks_for(instruction, "SCHEDULE_EARLIEST")


def _is_late(instruction: Instruction) -> bool:
    opcode = instruction.opcode
    if opcode in _COLLECTIVE_DONES:
        return _is_early(instruction.operands[0])
    return opcode is Opcode.ASYNC_DONE or _asks_for(instruction, "SCHEDULE_LATEST")


def _asks_for(instruction: Instruction, schedule: str) -> bool:
    return (
        instruction.opcode is Opcode.CUSTOM_CALL
        and instruction.attributes.get("schedule") == schedule
    )


def _starts_collective(instruction: Instruction) -> bool:
    if instruction.opcode is Opcode.ASYNC_START:
        return wrapped(instruction).opcode in SYNC_COLLECTIVES
    return instruction.opcode in _COLLECTIVE_STARTS


def _is_done(instruction: Instruction) -> bool:
    return instruction.opcode in _COLLECTIVE_DONES or instruction.opcode is Opcode.ASYNC_DONE
