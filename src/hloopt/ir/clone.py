"""Copies of computations and modules, and of what instructions own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order


def clone_computation(
    computation: Computation,
) -> tuple[Computation, dict[Instruction, Instruction]]:
    """A copy named `NAME.clone` at the end of the same module, and the copies by original.

    The copy keeps order (so the schedule) and control dependencies, and shares called
    computations. O(instructions + edges).
    """
    clone = computation.module.add_computation(f"{computation.name}.clone")
    clone.execution_thread = computation.execution_thread
    copies = copy_instructions(stable_order(computation), clone, {})
    clone.set_root(copies[computation.root])
    return clone, copies


def clone_to_change(computation: Computation) -> Computation:
    """A copy as `clone_computation` makes it, with copies of what its instructions own.

    O(instructions of all that is copied).
    """
    clone, _ = clone_computation(computation)
    for instruction in clone.instructions:
        own_computations(instruction)
    return clone


def own_computations(copy: Instruction, *, loops: bool = False) -> None:
    """Give a copied fusion, custom call or asynchronous start copies of what it calls.

    These computations belong to one instruction each, inside of them too; with `loops` those of
    while loops as well. O(their instructions).
    """
    owners = _OWNERS_AND_LOOPS if loops else _OWNERS
    if copy.opcode not in owners:
        return
    stack = [copy]
    while stack:
        owner = stack.pop()
        if owner.opcode in owners:
            clones = [clone_computation(called)[0] for called in owner.called]
            owner.set_called(tuple(clones))
            stack += [i for clone in clones for i in clone.instructions]


_OWNERS = frozenset((Opcode.FUSION, Opcode.ASYNC_START, Opcode.CUSTOM_CALL))
_OWNERS_AND_LOOPS = _OWNERS | {Opcode.WHILE}


def copy_instructions(
    instructions: Iterable[Instruction],
    into: Computation,
    replacements: Mapping[Instruction, Instruction],
) -> dict[Instruction, Instruction]:
    """Append copies of `instructions` to `into`; returns them by original.

    Operands come before their users, or are in `replacements`, which says what stands for them.
    """
    copies: dict[Instruction, Instruction] = dict(replacements)
    for instruction in instructions:
        copy = into.add_clone(instruction, [copies[o] for o in instruction.operands])
        copies[instruction] = copy
        for predecessor in instruction.control_predecessors:
            copy.add_control_predecessor(copies[predecessor])
    return copies


def clone_module(module: Module) -> tuple[Module, dict[Computation, Computation]]:
    """A copy of the whole module, and the copied computations by original.

    Names, order and header are kept; the copy has no source. O(instructions + edges).
    """
    copy = Module(module.name)
    copy.attributes = dict(module.attributes)
    copy.header_text = module.header_text
    copy.stack_frames = module.stack_frames
    computations: dict[Computation, Computation] = {}
    for computation in module.computations.values():
        computations[computation] = copy.add_computation(computation.name)
        computations[computation].execution_thread = computation.execution_thread
    for computation, target in computations.items():
        copies = copy_instructions(stable_order(computation), target, {})
        target.set_root(copies[computation.root])
        for original, instruction in copies.items():
            instruction.name = original.name
            if original.called:
                instruction.set_called(tuple(computations[c] for c in original.called))
    copy.instruction_names = module.instruction_names.copy()
    copy.computation_names = module.computation_names.copy()
    copy.entry = computations[module.entry]
    return copy, computations
