"""The instructions that do more than compute a value."""

from __future__ import annotations

from functools import cached_property

from hloopt.ir.attributes.typed import constrains_layout
from hloopt.ir.callers import with_callers
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode

_ALWAYS = frozenset(
    (
        *(Opcode.SEND, Opcode.SEND_DONE, Opcode.RECV, Opcode.RECV_DONE),
        *(Opcode.INFEED, Opcode.OUTFEED, Opcode.RNG, Opcode.RNG_GET_AND_UPDATE_STATE),
        *(Opcode.ALL_REDUCE_START, Opcode.ALL_REDUCE_DONE),
        *(Opcode.ALL_GATHER_START, Opcode.ALL_GATHER_DONE),
        *(Opcode.COLLECTIVE_PERMUTE_START, Opcode.COLLECTIVE_PERMUTE_DONE),
    )
)
_WITH_CHANNEL = frozenset(
    (
        *(Opcode.ALL_REDUCE, Opcode.ALL_GATHER, Opcode.REDUCE_SCATTER, Opcode.ALL_TO_ALL),
        *(Opcode.COLLECTIVE_PERMUTE, Opcode.COLLECTIVE_BROADCAST, Opcode.RAGGED_ALL_TO_ALL),
    )
)
_LATER_PARTS = (Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE)


def has_own_side_effect(instruction: Instruction, *, is_spmd: bool = False) -> bool:
    """Whether the instruction itself has a side effect, called computations aside.

    A channel ties a collective to those of other programs; with `is_spmd` there are none, as all
    partitions run this one.
    """
    opcode = instruction.opcode
    if opcode in _ALWAYS:
        return True
    if opcode in _WITH_CHANNEL:
        has_channel = not is_spmd and "channel_id" in instruction.attributes
        return has_channel or constrains_layout(instruction)
    if opcode is Opcode.CUSTOM_CALL:
        return instruction.attributes.get("custom_call_has_side_effect") == "true"
    return False


class SideEffects:
    """Side effects with called computations looked into.

    The first question about a call looks at all computations of the module, in O(instructions).
    Valid while no side effect is added to these but those of copies, which `add_copy` tells.
    """

    def __init__(self, module: Module) -> None:
        self._module = module

    @cached_property
    def _computations(self) -> set[Computation]:
        """The computations that have a side effect, or run one that has."""
        return with_callers(filter(_has_own_side_effect, self._module.computations.values()))

    def of(self, instruction: Instruction) -> bool:
        """Whether running the instruction, or what it calls, has a side effect.

        Each part of an asynchronous operation has those of what its start wraps.
        """
        while instruction.opcode in _LATER_PARTS and instruction.operands:
            instruction = instruction.operands[0]
        return has_own_side_effect(instruction) or any(
            called in self._computations for called in instruction.called
        )

    def add_copy(self, copy: Computation, original: Computation) -> None:
        """Note that `copy` is a new computation that does what `original` does."""
        if original in self._computations:
            self._computations.add(copy)

    def of_computation(self, computation: Computation) -> bool:
        """Whether running the computation has a side effect."""
        return computation in self._computations


_MAY_HAVE_SIDE_EFFECT = _ALWAYS | _WITH_CHANNEL | {Opcode.CUSTOM_CALL}


def _has_own_side_effect(computation: Computation) -> bool:
    candidates = [i for i in computation.instructions if i.opcode in _MAY_HAVE_SIDE_EFFECT]
    return any(map(has_own_side_effect, candidates))
