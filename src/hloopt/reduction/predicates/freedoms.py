"""Results that XLA leaves open: a backend may choose them, so that two engines may differ."""

from __future__ import annotations

import numpy as np

from hloopt.interpreter.literals import literal_value
from hloopt.interpreter.plan import Plans
from hloopt.interpreter.reducers import identity_of, ufuncs_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode

_REDUCTIONS = frozenset(
    (
        *(Opcode.REDUCE, Opcode.REDUCE_WINDOW, Opcode.REDUCE_SCATTER, Opcode.SCATTER),
        *(Opcode.ALL_REDUCE, Opcode.ALL_REDUCE_START, Opcode.SELECT_AND_SCATTER),
    )
)
_WITH_INITIAL_VALUES = frozenset((Opcode.REDUCE, Opcode.REDUCE_WINDOW, Opcode.SELECT_AND_SCATTER))


def freedoms_of(module: Module) -> frozenset[str]:
    """The choices that a module leaves to a backend, in words. O(instructions).

    They are the order of a reduction, that of equal keys, and how often an initial value is
    applied.
    """
    plans = Plans()
    found: set[str] = set()
    for instruction in module.instructions():
        if instruction.opcode is Opcode.SORT:
            if not _is_ordered(instruction):
                found.add("the order of equal keys")
        elif instruction.opcode in _REDUCTIONS:
            ufuncs = plans.ask(ufuncs_of, instruction.called[-1])
            if ufuncs is None:
                found.add("the order of a reduction")
            elif instruction.opcode in _WITH_INITIAL_VALUES and not _starts_neutral(
                instruction, ufuncs
            ):
                found.add("how often an initial value is applied")
    return frozenset(found)


def _is_ordered(sort: Instruction) -> bool:
    """Whether a sort is stable, by one comparison."""
    is_compare = sort.called[0].root.opcode is Opcode.COMPARE
    return is_compare and sort.attributes.get("is_stable") == "true"


def _starts_neutral(reduction: Instruction, ufuncs: list[np.ufunc]) -> bool:
    """Whether all initial values are constants that change nothing."""
    for initial, ufunc in zip(reduction.operands[-len(ufuncs) :], ufuncs, strict=True):
        if initial.opcode is not Opcode.CONSTANT or ELIDED in initial.payload:
            return False
        value = np.asarray(literal_value(initial.payload, initial.shape))
        if not np.array_equal(value, identity_of(ufunc, value.dtype)):
            return False
    return True
