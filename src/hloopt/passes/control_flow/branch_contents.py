"""The contents of a branch, which decide whether it may run without its conditional."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import COLLECTIVES, ELEMENTWISE_BINARY, ELEMENTWISE_UNARY, Opcode
from hloopt.ir.ordering import depth_first

_FORWARDING = frozenset((Opcode.PARAMETER, Opcode.TUPLE, Opcode.GET_TUPLE_ELEMENT))
_CHEAP = frozenset(
    (
        *(*_FORWARDING, *ELEMENTWISE_UNARY, *ELEMENTWISE_BINARY, Opcode.CLAMP, Opcode.SELECT),
        *(Opcode.CONSTANT, Opcode.BROADCAST, Opcode.RESHAPE, Opcode.SLICE, Opcode.DYNAMIC_SLICE),
        *(Opcode.CONCATENATE, Opcode.PAD, Opcode.REDUCE, Opcode.MAP, Opcode.FUSION),
    )
)
"""Opcodes that XLA is willing to run for both branches, a fusion if that holds for all in it."""

Found = dict[Computation, Instruction | None]


class BranchContents:
    """Finds instructions of a kind in branches and in what they call, once per computation.

    Answers stay right while no computation gets an instruction that was not in its callees.
    """

    def __init__(self) -> None:
        self._collectives: Found = {}
        self._loops: Found = {}
        self._expensive: Found = {}

    def collective(self, branch: Computation) -> Instruction | None:
        """A collective that the branch runs. O(instructions not seen before)."""
        return _find(branch, lambda i: i.opcode in COLLECTIVES, _called, self._collectives)

    def loop(self, branch: Computation) -> Instruction | None:
        """A loop that the branch runs. O(instructions not seen before)."""
        return _find(branch, lambda i: i.opcode is Opcode.WHILE, _called, self._loops)

    def expensive(self, branch: Computation) -> Instruction | None:
        """Something too expensive to run for nothing. O(instructions not seen before)."""
        return _find(branch, lambda i: i.opcode not in _CHEAP, _fused, self._expensive)


def _called(instruction: Instruction) -> Iterable[Computation]:
    return instruction.called


def _fused(instruction: Instruction) -> Iterable[Computation]:
    return instruction.called if instruction.opcode is Opcode.FUSION else ()


def only_forwards(branch: Computation) -> bool:
    """Whether the branch computes nothing. O(instructions)."""
    return all(instruction.opcode in _FORWARDING for instruction in branch.instructions)


def _find(
    branch: Computation,
    is_wanted: Callable[[Instruction], bool],
    callees: Callable[[Instruction], Iterable[Computation]],
    found: Found,
) -> Instruction | None:
    def unknown(computation: Computation) -> list[Computation]:
        return [c for i in computation.instructions for c in callees(i) if c not in found]

    if branch not in found:
        for computation in depth_first([branch], unknown):
            found[computation] = next(
                (
                    i
                    for i in computation.instructions
                    if is_wanted(i) or any(found[c] for c in callees(i))
                ),
                None,
            )
    return found[branch]
