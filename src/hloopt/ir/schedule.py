"""Giving a module a schedule, and taking it away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module


def set_schedule(module: Module, orders: Mapping[Computation, Sequence[Instruction]]) -> int:
    """Make `orders` the schedule of the module; how many computations got another order.

    Bodies of fusions need no order. The module counts as changed if it had no schedule or another
    one. Where it had none, computations remember the order that they had. O(instructions).
    """
    reordered = 0
    for computation, order in orders.items():
        if not module.is_scheduled:
            computation.unscheduled = tuple(computation.instructions)
        if list(computation.instructions) != list(order):
            computation.reorder(order)
            reordered += 1
    if not module.is_scheduled:
        module.set_attribute("is_scheduled", "true")
    return reordered


def drop_schedule(module: Module) -> bool:
    """Let the order of the text mean nothing; whether there was a schedule."""
    was_scheduled = module.is_scheduled
    if was_scheduled:
        module.set_attribute("is_scheduled", None)
    return was_scheduled
