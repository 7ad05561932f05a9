"""Replace instructions by values that are there already."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import ClassVar

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order
from hloopt.ir.shapes.shape import Shape
from hloopt.reduction.edits.edit import Count
from hloopt.reduction.edits.session import EditSession


class ReplaceByOperand:
    """Replace instructions by their first operand of the same shape."""

    what: ClassVar[Count] = Count(
        "instruction replaced by an operand", "instructions replaced by an operand"
    )
    one_by_one: ClassVar[bool] = False

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Instructions that have such an operand."""
        return [i.name for i in module.instructions() if _same_operand(i) is not None]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Replace them, operands first."""
        for computation in list(session.module.computations.values()):
            for instruction in stable_order(computation):
                operand = _same_operand(instruction) if instruction.name in parts else None
                if operand is not None:
                    session.replace(instruction, operand)


def _same_operand(instruction: Instruction) -> Instruction | None:
    shape = instruction.shape
    return next((operand for operand in instruction.operands if operand.shape is shape), None)


class ReplaceByEarlier:
    """Replace values by the first one of their computation that has the same shape."""

    what: ClassVar[Count] = Count(
        "value replaced by an earlier one", "values replaced by an earlier one"
    )
    one_by_one: ClassVar[bool] = False

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Values that have one of the same shape before them."""
        found: list[Hashable] = []
        for computation in module.computations.values():
            first = _first_by_shape(computation)
            found += [i.name for i in computation.instructions if first[i.shape] is not i]
        return found

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Replace them by values that stay."""
        for computation in list(session.module.computations.values()):
            first = _first_by_shape(computation)
            for instruction in stable_order(computation):
                other = first[instruction.shape]
                if instruction.name in parts and other is not instruction:
                    session.replace(instruction, other)


def _first_by_shape(computation: Computation) -> dict[Shape, Instruction]:
    """The first value of each shape, parameters before others. O(instructions)."""
    first: dict[Shape, Instruction] = {}
    for instruction in (*computation.parameters, *stable_order(computation)):
        first.setdefault(instruction.shape, instruction)
    return first


class KeepOneResult:
    """Let the entry return one operand of its root, or what nothing uses."""

    what: ClassVar[Count] = Count(
        "result replaced by what it is made of", "results replaced by what they are made of"
    )
    one_by_one: ClassVar[bool] = True

    def parts(self, module: Module) -> Sequence[Hashable]:
        """All that is not used, and the operands."""
        entry = module.entry
        unused = [
            i.name
            for i in entry.instructions
            if not i.users and not i.is_root and i.opcode is not Opcode.PARAMETER
        ]
        return [*unused, *(operand.name for operand in dict.fromkeys(entry.root.operands))]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Let the entry return the value of this name."""
        entry = session.module.entry
        root = entry.root
        for instruction in list(entry.instructions):
            if instruction.name in parts:
                entry.set_root(instruction)
                session.loosen([root])
                return


class DropOutputs:
    """Drop elements of the tuple that the entry returns."""

    what: ClassVar[Count] = Count("output dropped", "outputs dropped")
    one_by_one: ClassVar[bool] = False

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Elements by number and name."""
        root = module.entry.root
        if root.opcode is not Opcode.TUPLE:
            return []
        return [(number, operand.name) for number, operand in enumerate(root.operands)]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Return a tuple of the others."""
        from hloopt.ir.tuples import make_tuple

        entry = session.module.entry
        root = entry.root
        kept = [o for n, o in enumerate(root.operands) if (n, o.name) not in parts]
        entry.set_root(make_tuple(entry, kept))
        session.loosen([root])
