"""Copies in the place of values of any shape."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.analysis.dataflow import slots_of
from hloopt.ir import Computation, Instruction, Opcode
from hloopt.passes.rewriting.deep_copy import deep_copy


def replace_by_copy(value: Instruction, slots: Iterable[int]) -> dict[int, Instruction]:
    """Let all users of a value, the root included, take a deep copy; the copies by slot."""
    users = list(value.users)
    result, copies = deep_copy(value, slots)
    if copies:
        for user in users:
            user.exchange_operand(value, result)
        if value.is_root:
            value.parent.set_root(result)
    return copies


def replace_root(computation: Computation, slots: Iterable[int]) -> dict[int, Instruction]:
    """Let a computation return a deep copy of what it returned; the copies by slot."""
    root = computation.root
    result, copies = deep_copy(root, slots)
    computation.set_root(result)
    _remove_unused_tuple(root)
    return copies


def replace_operand(user: Instruction, number: int, slots: Iterable[int]) -> dict[int, Instruction]:
    """Let an instruction read a deep copy of one of its operands; the copies by slot."""
    operand = user.operands[number]
    result, copies = deep_copy(operand, slots)
    user.replace_operand(number, result)
    _remove_unused_tuple(operand)
    return copies


def copy_operand(user: Instruction, number: int) -> dict[int, Instruction]:
    """Let an instruction read a deep copy of all of an operand; the copies by slot."""
    return replace_operand(user, number, all_slots(user.operands[number]))


def all_slots(value: Instruction) -> range:
    """All slots of a value."""
    return range(len(slots_of(value.shape).parts))


def _remove_unused_tuple(value: Instruction) -> None:
    """Remove a tuple that nothing reads any more, whatever its control dependencies."""
    if value.opcode is Opcode.TUPLE and not value.users and not value.is_root:
        value.parent.remove(value)
