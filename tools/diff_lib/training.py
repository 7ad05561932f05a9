"""Removal of a layer from a training step: forward, backward, and the updates of its weights."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from random import Random

from diff_lib.edits import remove_dead, rows
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order

_LEAST_WEIGHTS = 8
_MOST_BEHIND = 1_500

Step = tuple[Instruction, Instruction]


def remove_layer(module: Module, random: Random) -> bool:
    """Remove a layer from the entry; its parameters stay, and become results unchanged.

    A layer is a segment between two neighbours of a row in the forward pass that reads many
    parameters, with a segment of a later row, the backward pass, that reads most of the same.
    """
    order = stable_order(module.entry)
    number = {instruction: index for index, instruction in enumerate(order)}
    steps: list[tuple[Step, frozenset[Instruction]]] = []
    for row in rows(module):
        for start, end in pairwise(row):
            if start.parent is module.entry:
                weights = _weights_between(start, end, number)
                if len(weights) >= _LEAST_WEIGHTS:
                    steps.append(((start, end), weights))
    random.shuffle(steps)
    for forward, weights in steps:
        for backward, others in steps:
            is_behind = number[backward[0]] > len(order) // 2 > number[forward[1]]
            same_shape = forward[1].shape is backward[1].shape
            if is_behind and same_shape and 4 * len(weights & others) > 3 * len(weights):
                behind = _behind(*backward)
                if behind:
                    _take_out(module, behind, forward, backward)
                    return True
    return False


def _weights_between(
    start: Instruction, end: Instruction, number: Mapping[Instruction, int]
) -> frozenset[Instruction]:
    """Parameters that `end` depends on through instructions after `start`."""
    seen = {start, end}
    waiting = [end]
    while waiting:
        for operand in waiting.pop().operands:
            is_parameter = operand.opcode is Opcode.PARAMETER
            if operand not in seen and (is_parameter or number[operand] > number[start]):
                seen.add(operand)
                waiting.append(operand)
    return frozenset(each for each in seen if each.opcode is Opcode.PARAMETER)


def _behind(start: Instruction, end: Instruction) -> dict[Instruction, None]:
    """Instructions that depend on `start` other than through `end`; empty if too many.

    Does not continue beyond sums of scalars, as in the norm of all gradients.
    """
    seen: dict[Instruction, None] = {}
    waiting = [start]
    while waiting:
        for user in waiting.pop().users:
            if user is not end and user not in seen and not user.is_root:
                seen[user] = None
                if not _is_sum(user):
                    waiting.append(user)
        if len(seen) > _MOST_BEHIND:
            return {}
    return seen


def _is_sum(instruction: Instruction) -> bool:
    return instruction.opcode is Opcode.ADD and instruction.shape.is_scalar


def _take_out(
    module: Module, behind: Mapping[Instruction, None], forward: Step, backward: Step
) -> None:
    """Bypass both steps, drop `behind` from sums, and return parameters in place of their updates.

    Result n of a training step is the updated parameter n.
    """
    root = module.entry.root
    parameters = module.entry.parameters
    gone: list[Instruction] = []
    for place, result in enumerate(root.operands):
        if result in behind and place < len(parameters):
            root.replace_operand(place, parameters[place])
            gone.append(result)
    for total in behind:
        if _is_sum(total):
            rest = [operand for operand in total.operands if operand not in behind]
            if rest:
                total.replace_all_uses_with(rest[0])
                gone.append(total)
    for start, end in (forward, backward):
        end.replace_all_uses_with(start)
        gone.append(end)
    remove_dead(gone)
