"""Copies wherever one buffer might have to hold two values at a time."""

from __future__ import annotations

from collections.abc import Mapping

from hloopt.analysis.dataflow.scope import fused_computations
from hloopt.analysis.in_place import IN_PLACE
from hloopt.ir import Computation, Instruction, Module, Opcode
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.opcode import ASYNC
from hloopt.ir.ordering import post_order, stable_computation_order
from hloopt.pass_framework.base import is_on_thread
from hloopt.passes.copy_insertion.aliasing import copy_aliased
from hloopt.passes.copy_insertion.buffer_chains import CHAIN_STARTS, copy_around_chain
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
    for instruction in _candidates(module, facts, threads):
        _add_for(instruction, facts)
    if is_on_thread(module.entry, threads):
        copy_aliased(module)


_MERGES = (Opcode.WHILE, Opcode.CONDITIONAL)
_CANDIDATES = IN_PLACE.union(TRANSFERS, _MERGES)


def _may_need_copies(instruction: Instruction, facts: Facts) -> bool:
    opcode = instruction.opcode
    if opcode not in IN_PLACE or opcode in ASYNC or facts.in_place.pairs(instruction):
        return True
    return opcode is Opcode.CUSTOM_CALL and custom_call_target(instruction) in CHAIN_STARTS


def _candidates(module: Module, facts: Facts, threads: tuple[str, ...]) -> list[Instruction]:
    """Instructions that may need copies, callees before callers, in post-order."""
    order = stable_computation_order(module)
    fused = fused_computations(order)
    found: dict[Computation, list[Instruction]] = {}
    for computation in order:
        if computation in fused or computation.is_asynchronous:
            continue
        if is_on_thread(computation, threads):
            some = [i for i in computation.instructions if i.opcode in _CANDIDATES]
            found[computation] = [i for i in some if _may_need_copies(i, facts)]
    orders: Mapping[Computation, list[Instruction]] = {}
    if any(i.opcode in _MERGES for candidates in found.values() for i in candidates):
        orders = facts.flow.scope.orders  # as long as the module is what the facts are about
    result: list[Instruction] = []
    for computation, candidates in found.items():
        if len(candidates) > 1:
            wanted = set(candidates)
            in_order = orders.get(computation) or post_order(computation)
            candidates = [i for i in in_order if i in wanted]
        result += candidates
    return result


def _add_for(instruction: Instruction, facts: Facts) -> None:
    opcode = instruction.opcode
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
