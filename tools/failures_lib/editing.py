"""Right rewrites, in many places, between which the bugs of planted passes stand."""

from __future__ import annotations

from collections.abc import Iterable

from hloopt.ir import Instruction, Module, Opcode
from hloopt.pass_framework.base import ModulePass, PassContext
from hloopt.passes.rewriting.replace import replace_instruction

_COMMUTATIVE = frozenset((Opcode.ADD, Opcode.MULTIPLY, Opcode.MAXIMUM, Opcode.MINIMUM))


class Editing(ModulePass):
    """Edits one place after the other, each an application."""

    def places(self, module: Module) -> Iterable[Instruction]:
        """The instructions to edit, found before the first edit."""
        raise NotImplementedError

    def edit(self, place: Instruction) -> None:
        """Edit one of them."""
        raise NotImplementedError

    def run(self, module: Module, context: PassContext) -> bool:
        changed = False
        for place in list(self.places(module)):
            if not context.apply(place, "is written otherwise"):
                break
            self.edit(place)
            changed = True
        return changed


class OrdersOperands(Editing):
    """Writes the operands of sums and products in the order of their opcodes."""

    def places(self, module: Module) -> Iterable[Instruction]:
        return (i for i in module.instructions() if is_out_of_order(i))

    def edit(self, place: Instruction) -> None:
        place.set_operands(place.operands[::-1])


class ForwardsCopies(Editing):
    """Replaces copies that change no layout by their operands."""

    def places(self, module: Module) -> Iterable[Instruction]:
        for copy in module.instructions(Opcode.COPY):
            is_plain = copy.shape is copy.operands[0].shape
            if is_plain and not copy.has_control_dependencies:
                yield copy

    def edit(self, place: Instruction) -> None:
        replace_instruction(place, place.operands[0])


class RemovesTurns(Editing):
    """Removes one pair of transposes that undo each other in each run."""

    def places(self, module: Module) -> Iterable[Instruction]:
        for turn in module.instructions(Opcode.TRANSPOSE):
            source = turn.operands[0]
            if source.opcode is Opcode.TRANSPOSE and turn.shape is source.operands[0].shape:
                yield turn
                return

    def edit(self, place: Instruction) -> None:
        replace_instruction(place, place.operands[0].operands[0])


def is_out_of_order(instruction: Instruction) -> bool:
    """Whether the operands of a sum or product are to be exchanged."""
    if instruction.opcode not in _COMMUTATIVE:
        return False
    one, other = instruction.operands
    return one.opcode > other.opcode
