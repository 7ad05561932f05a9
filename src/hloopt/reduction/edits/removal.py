"""Remove instructions: in the entry parameters stand for them, elsewhere zeros."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import ClassVar

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order
from hloopt.ir.tuples import make_tuple
from hloopt.reduction.edits.edit import Count
from hloopt.reduction.edits.session import EditSession
from hloopt.reduction.edits.substitutes import NotApplicable, Substitutes


class RemoveInstructions:
    """Remove instructions of all computations at once.

    What is left of the entry keeps its uses as results: where the root goes, what it was made of
    becomes the result.
    """

    what: ClassVar[Count] = Count("instruction removed", "instructions removed")
    one_by_one: ClassVar[bool] = False

    def __init__(self, *, sweeps: bool = True) -> None:
        self._sweeps = sweeps
        """Whether what only they used goes along; else it stays, used by nothing."""

    def parts(self, module: Module) -> Sequence[Hashable]:
        """All instructions but parameters that something needs."""
        return [
            instruction.name
            for instruction in module.instructions()
            if instruction.opcode is not Opcode.PARAMETER
            or (instruction.parent.is_entry and not instruction.users and not instruction.is_root)
        ]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Remove the instructions of these names. O(module)."""
        chosen: dict[Computation, set[Instruction]] = {}
        for instruction in session.module.instructions():
            if instruction.name in parts:
                chosen.setdefault(instruction.parent, set()).add(instruction)
        for computation, instructions in chosen.items():
            remove_from(session, computation, instructions, sweeps=self._sweeps)


def remove_from(
    session: EditSession,
    computation: Computation,
    instructions: set[Instruction],
    *,
    sweeps: bool = True,
) -> None:
    """Remove instructions of one computation. O(computation)."""
    order = stable_order(computation)
    if computation.is_entry:
        _settle_root(computation, order, instructions)
    substitutes = Substitutes(computation)
    going = [instruction for instruction in reversed(order) if instruction in instructions]
    for instruction in going:
        if instruction.users or instruction.is_root:
            instruction.replace_all_uses_with(substitutes.of(instruction.shape))
        instruction.drop_control_dependencies()
        if sweeps:
            session.drop(instruction)
        else:
            computation.remove(instruction)


def _settle_root(
    entry: Computation, order: Sequence[Instruction], instructions: set[Instruction]
) -> None:
    """Let the entry return what is left of its result, or what is used no more."""
    root = entry.root
    if root in instructions:
        ends = [
            instruction
            for instruction in order
            if instruction not in instructions
            and instruction.opcode is not Opcode.PARAMETER
            and instruction.users
            and instructions.issuperset(instruction.users)
        ]
        if not ends:
            ends = [i for i in root.operands if i not in instructions][:1]
        if not ends and len(instructions) == len(order):
            raise NotApplicable
        entry.set_root(ends[0] if len(ends) == 1 else make_tuple(entry, ends))
    elif root.opcode is Opcode.TUPLE:
        kept = [operand for operand in root.operands if operand not in instructions]
        if len(kept) < len(root.operands):
            entry.set_root(make_tuple(entry, kept))
            instructions.add(root)
