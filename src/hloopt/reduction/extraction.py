"""Extract a part of a module as a module of its own, which runs."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.analysis.async_operations import OWN_DONES, SEND_RECV_DONE
from hloopt.diagnostics import HloError, counted
from hloopt.ir.async_chains import ASYNC_CONTINUES
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.tuples import make_tuple
from hloopt.reduction.edits.removal import remove_from
from hloopt.reduction.edits.session import EditSession

_MOST_NAMED = 5
_CONTINUES = frozenset((*ASYNC_CONTINUES, *OWN_DONES, *SEND_RECV_DONE))


def extract_computation(module: Module, computation: Computation) -> None:
    """Make a computation the entry of its module, with all that it calls. O(module)."""
    session = EditSession(module)
    _make_entry(module, computation)
    session.finish()


def extract_instructions(
    module: Module, chosen: Iterable[Instruction], *, depth: int = 0, users: int = 0
) -> None:
    """Keep some instructions of one computation, as the entry; parameters stand for the rest.

    So many steps of operands and of users are kept as well, asynchronous operations as a whole.
    What is used by what is left out, or by nothing, is the result. O(module). Raises HloError where
    the instructions are in several computations.
    """
    kept = dict.fromkeys(chosen)
    computation = _one_computation(kept)
    if "input_output_alias" in module.attributes:  # the results are others
        module.set_attribute("input_output_alias", None)
    session = EditSession(module)
    _grow(kept, depth, users)
    for instruction in list(kept):
        kept.update(dict.fromkeys(_whole_operation(instruction)))
    outputs = [
        instruction
        for instruction in computation.instructions
        if instruction in kept and _is_output(instruction, kept)
    ]
    outputs = outputs or list(kept)  # parameters alone
    root = computation.root
    is_made = len(outputs) != 1
    result = make_tuple(computation, outputs) if is_made else outputs[0]
    computation.set_root(result)
    kept[result] = None
    if root not in kept and root.opcode is not Opcode.PARAMETER:
        session.loosen([root])
    _make_entry(module, computation)
    going = {i for i in computation.instructions if i not in kept}
    remove_from(session, computation, {i for i in going if i.opcode is not Opcode.PARAMETER})
    session.loosen([i for i in computation.parameters if i not in kept])
    session.finish()


def _one_computation(chosen: Iterable[Instruction]) -> Computation:
    parents = list(dict.fromkeys(i.parent for i in chosen))
    if len(parents) == 1:
        return parents[0]
    named = ", ".join(f"%{parent.name}" for parent in parents[:_MOST_NAMED])
    more = ", …" if len(parents) > _MOST_NAMED else ""
    raise HloError(
        f"the instructions are in {counted(len(parents), 'computation')}: {named}{more}",
        help="extract one of them by its name, or a narrower scope",
    )


def _grow(kept: dict[Instruction, None], depth: int, users: int) -> None:
    start = list(kept)
    for steps, following in ((depth, _operands), (users, _users)):
        front = start
        for _ in range(steps):
            front = [i for each in front for i in following(each) if i not in kept]
            kept.update(dict.fromkeys(front))
            if not front:
                break


def _whole_operation(instruction: Instruction) -> Iterable[Instruction]:
    """An instruction, and the start, updates and dones of the operation that it is a step of."""
    while instruction.opcode in _CONTINUES and instruction.operands:
        instruction = instruction.operands[0]
    steps = [instruction]
    for step in steps:
        steps += [u for u in step.users if u.opcode in _CONTINUES and u.operands[0] is step]
    return steps


def _operands(instruction: Instruction) -> Iterable[Instruction]:
    return instruction.operands


def _users(instruction: Instruction) -> Iterable[Instruction]:
    return instruction.users


def _is_output(instruction: Instruction, kept: dict[Instruction, None]) -> bool:
    """Whether something that is left out needs the value; parameters hand nothing out."""
    if instruction.opcode is Opcode.PARAMETER:
        return False
    users = instruction.users
    return instruction.is_root or not users or any(user not in kept for user in users)


def _make_entry(module: Module, computation: Computation) -> None:
    if module.entry is not computation:
        module.entry = computation
        computation.execution_thread = "main"
        module.changed()
