"""Copies wherever one buffer might have to hold two values at a time."""

from __future__ import annotations

from hloopt.analysis.in_place import IN_PLACE
from hloopt.ir import Instruction, Module, Opcode
from hloopt.ir.ordering import stable_computation_order
from hloopt.passes.base import is_on_thread
from hloopt.passes.copy_insertion.aliasing import copy_aliased
from hloopt.passes.copy_insertion.buffer_chains import copy_around_chain
from hloopt.passes.copy_insertion.deep_copy import replace_root
from hloopt.passes.copy_insertion.facts import Facts
from hloopt.passes.copy_insertion.in_place import copy_overwritten_operands
from hloopt.passes.copy_insertion.loops import TRANSFERS, copy_loop_state
from hloopt.passes.copy_insertion.transfers import copy_around_transfer
from hloopt.verifier.shapes import has_buffers


def add_copies(module: Module, facts: Facts, threads: tuple[str, ...]) -> None:
    """Add more copies than are needed: `remove_copies` then finds out which.

    Around loops and conditionals, for operations in place, around transfers and where the entry
    returns a result in the memory of a parameter. Linear in instructions and elements of tuples.
    """
    for computation in stable_computation_order(module):
        order = facts.flow.scope.orders.get(computation)
        if order is None or computation.is_asynchronous:
            continue
        if is_on_thread(computation, threads):
            for instruction in order:
                _add_for(instruction, facts)
    if is_on_thread(module.entry, threads):
        copy_aliased(module)


_NEVER_COPIED = frozenset(Opcode) - IN_PLACE - {*TRANSFERS, Opcode.WHILE, Opcode.CONDITIONAL}


def _add_for(instruction: Instruction, facts: Facts) -> None:
    opcode = instruction.opcode
    if opcode in _NEVER_COPIED:
        return
    if opcode is Opcode.WHILE:
        copy_loop_state(instruction, facts)
    elif opcode is Opcode.CONDITIONAL:
        _copy_results(instruction, facts)
    elif opcode in TRANSFERS:
        copy_around_transfer(instruction)
    elif not _works_on_buffers(instruction):
        copy_overwritten_operands(instruction, facts)
    elif opcode is Opcode.CUSTOM_CALL:
        copy_around_chain(instruction)


def _copy_results(conditional: Instruction, facts: Facts) -> None:
    """Copy what each branch returns where that is not the same in all of them."""
    slots = facts.merges(conditional)
    for branch in conditional.called if slots else ():
        replace_root(branch, slots)


def _works_on_buffers(instruction: Instruction) -> bool:
    return any(has_buffers(part.shape) for part in (instruction, *instruction.operands))
