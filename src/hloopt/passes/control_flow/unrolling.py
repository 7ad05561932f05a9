"""Copies of a loop's body: behind itself, and before the loop."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from hloopt.analysis.async_operations import OWN_STARTS, SYNC_COLLECTIVES, wrapped
from hloopt.analysis.loops.annotation import backend_config
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ELEMENTWISE_BINARY, Opcode
from hloopt.ir.ordering import post_order
from hloopt.passes.collectives.collective_pipeliner.copies import Copier, Copies
from hloopt.passes.rewriting.slice_places import forget_slices, leave_loop, restate_slices


def communicates(instruction: Instruction) -> bool:
    """Whether an instruction is a collective, or starts one."""
    if instruction.opcode is Opcode.ASYNC_START:
        return wrapped(instruction).opcode in SYNC_COLLECTIVES
    return OWN_STARTS.get(instruction.opcode, instruction.opcode) in SYNC_COLLECTIVES


class Unroller:
    """Copies trips of while loops of a module, with channel ids and scheduling groups of their own.

    A schedule stays one: copies have the order of what they are copies of.
    """

    def __init__(self, module: Module) -> None:
        self._names = module.instruction_names
        self._copier = Copier(module, unique_channel_id=True)

    def repeat(self, loop: Instruction, suffix: str, count: int, *, to_one: bool = False) -> None:
        """Let each trip of a loop do the work of `count`, which its trip count is a multiple of.

        `to_one`: `count` is the trip count, so that one trip is left.
        O(count · (instructions of the body + elements of its state · what reads them)).
        """
        body = loop.called[0]
        order = _order(body)
        (state,) = body.parameters
        reads = [use for read in state.users for use in read.users]
        waiting = list(dict.fromkeys(use for use in reads if not _may_be_early(use)))
        previous = body.root
        name_of = {instruction: instruction.name for instruction in order}
        factor = 0 if to_one else count
        ends: Sequence[Instruction] = body.root.operands
        for number in range(1, count):
            copies = self._copy(order, {state: previous}, body, suffix, name_of)
            restate_slices((copies[i] for i in order), later=number, factor=factor)
            is_last = number == count - 1
            for use in waiting:
                if use is not body.root or is_last:
                    for end in ends:
                        copies[use].add_control_predecessor(end)
            previous, ends = copies[body.root], [copies[end] for end in body.root.operands]
            name_of = {instruction: copies[instruction].name for instruction in order}
        body.set_root(previous)
        restate_slices(order, later=0, factor=factor)
        forget_slices(loop.called[1].instructions)

    def peel(self, loop: Instruction, suffix: str) -> list[Instruction]:
        """Do the work of the first trip before a loop that makes one; returns the copies.

        They stand last in the computation of the loop. O(instructions of the body).
        """
        body = loop.called[0]
        order = _order(body)
        (state,) = body.parameters
        (init,) = loop.operands
        name_of = {instruction: instruction.name for instruction in order}
        copies = self._copy(order, {state: init}, loop.parent, suffix, name_of)
        for predecessor in loop.control_predecessors:
            for read in state.users:
                copies[read].add_control_predecessor(predecessor)
        loop.set_operands([copies[body.root]])
        peeled = [copies[instruction] for instruction in order]
        leave_loop(peeled)
        restate_slices(order, later=1, factor=1)
        forget_slices(loop.called[1].instructions)
        return peeled

    def _copy(
        self,
        order: Sequence[Instruction],
        copies: Copies,
        into: Computation,
        suffix: str,
        name_of: dict[Instruction, str],
    ) -> Copies:
        for instruction in order:
            copy = self._copier.copy_in_order(instruction, copies, into)
            copy.take_name(self._names.unique(_next_name(name_of[instruction], suffix)))
            if copy.opcode is Opcode.ASYNC_START:
                self._copier.renew_channel(wrapped(copy))
        groups = self._copier.new_groups(order)
        self._copier.regroup([copies[instruction] for instruction in order], groups)
        return copies


def _order(body: Computation) -> list[Instruction]:
    """The instructions of a body but its parameter, in the order in which they are copied."""
    order = list(body.instructions) if body.module.is_scheduled else post_order(body)
    return [instruction for instruction in order if instruction.opcode is not Opcode.PARAMETER]


def _may_be_early(use: Instruction) -> bool:
    """Whether a use of the state need not wait for the trip before: collectives, which are to
    overlap it, and arithmetic with a constant, which constant folding may remove."""
    is_arithmetic = use.opcode in ELEMENTWISE_BINARY or use.opcode is Opcode.COMPARE
    has_constant = any(operand.opcode is Opcode.CONSTANT for operand in use.operands)
    return communicates(use) or (is_arithmetic and has_constant)


def _next_name(name: str, suffix: str) -> str:
    """The name of a copy, numbered if the original is one of that kind: `x.suffix2`."""
    found = re.fullmatch(rf"(.*\.{suffix})(\d*)", name)
    return f"{found[1]}{int(found[2] or 1) + 1}" if found else f"{name}.{suffix}"


def restate(loop: Instruction, trips: int, *, skipped: int = 0, factor: int = 1) -> None:
    """State the trips that a loop makes from now on, which begin so many later than they did.

    Its variables take steps that are `factor` times as large. O(length of the backend_config).
    """
    config = backend_config(loop)
    if config is None:
        return
    config["known_trip_count"] = {"n": str(trips)}
    if "known_init_step" in config:
        config["known_init_step"] = _later(config["known_init_step"], skipped, factor)
    variables = config.get("dynamic_variables")
    if isinstance(variables, list):
        config["dynamic_variables"] = [_later(each, skipped, factor) for each in variables]
    loop.set_attribute("backend_config", json.dumps(config, separators=(",", ":")))


def _later(variable: object, skipped: int, factor: int) -> object:
    """The init and step of a variable from so many trips later on, with larger steps."""
    if not isinstance(variable, dict):
        return variable
    try:
        init, step = int(variable["init"]), int(variable["step"])
    except (KeyError, TypeError, ValueError):
        return variable
    return {**variable, "init": str(init + skipped * step), "step": str(factor * step)}
