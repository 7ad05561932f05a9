"""Inline what is called: calls, fusions, one branch of a conditional, one trip of a loop."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence
from typing import ClassVar

from hloopt.ir.clone import copy_instructions
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order
from hloopt.reduction.edits.edit import Count
from hloopt.reduction.edits.session import EditSession


class Inline:
    """Put the instructions of a called computation in place of its caller."""

    what: ClassVar[Count] = Count("caller inlined", "callers inlined")
    one_by_one: ClassVar[bool] = True

    def parts(self, module: Module) -> Sequence[Hashable]:
        """Callers, with the computation that takes their place."""
        return [
            (instruction.name, number)
            for instruction in module.instructions()
            if instruction.called
            for number, _ in enumerate(_choices(instruction))
        ]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Inline the callers of these names; several choices of one count as the first."""
        chosen = dict(sorted(_pairs(parts), reverse=True))
        for caller in [i for i in session.module.instructions() if i.name in chosen]:
            computation, arguments = list(_choices(caller))[chosen[caller.name]]
            copies = copy_instructions(
                [i for i in stable_order(computation) if i.opcode is not Opcode.PARAMETER],
                caller.parent,
                dict(zip(computation.parameters, arguments, strict=True)),
            )
            result = copies[computation.root]
            caller.drop_control_dependencies()
            session.replace(caller, result)


def _choices(caller: Instruction) -> Iterator[tuple[Computation, list[Instruction]]]:
    """The computations that may stand for a caller, with the values of their parameters."""
    match caller.opcode:
        case Opcode.CALL | Opcode.FUSION:
            yield caller.called[0], caller.operands
        case Opcode.WHILE:
            yield caller.called[0], caller.operands
        case Opcode.CONDITIONAL:
            for branch, operand in zip(caller.called, caller.operands[1:], strict=True):
                yield branch, [operand]


def _pairs(parts: Collection[Hashable]) -> Iterator[tuple[str, int]]:
    for part in parts:
        assert isinstance(part, tuple)
        name, number = part
        yield name, number
