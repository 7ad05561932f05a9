"""Copies of instructions of a loop's body, before, in and after the loop."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import cached_property
from itertools import count

from hloopt.analysis.side_effects import has_own_side_effect
from hloopt.ir.attributes.scheduling_annotations import annotation_of, group_of, set_group
from hloopt.ir.attributes.typed import channel_of, has_host_transfer
from hloopt.ir.clone import own_computations
from hloopt.ir.computation import Computation
from hloopt.ir.devices.channels import opcodes_with_channels, unused_channel_ids
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import Shape
from hloopt.ir.tuples import make_tuple, read_element

Copies = MutableMapping[Instruction, Instruction]
"""Copies by what they are copies of."""

_TRANSFERS = (Opcode.SEND, Opcode.RECV)
_TRANSFERS_DONE = (Opcode.SEND_DONE, Opcode.RECV_DONE)


class Copier:
    """Copies instructions with what they own; gives out channels and scheduling groups."""

    def __init__(self, module: Module, *, unique_channel_id: bool) -> None:
        self._module = module
        self._channels = unused_channel_ids(module)
        self._with_channels = opcodes_with_channels()
        self._unique_channel_id = unique_channel_id
        self._made: set[Instruction] = set()

    def copy(
        self, instruction: Instruction, operands: Sequence[Instruction], into: Computation
    ) -> Instruction:
        """A copy with other operands, its channel included. O(operands + what it owns)."""
        copy = into.add_clone(instruction, operands)
        if copy.called:
            own_computations(copy, loops=True)
        self._made.add(copy)
        return copy

    def copy_in_order(
        self, instruction: Instruction, copies: Copies, into: Computation
    ) -> Instruction:
        """A copy that comes after the copies of what its original comes after, and notes itself.

        `copies` says what stands for the operands. Control dependencies are copied where both
        ends are, channels renewed.
        """
        copy = self.copy(instruction, [copies[o] for o in instruction.operands], into)
        if copy.opcode in self._with_channels:
            self.renew_channel(copy)
        for predecessor in instruction.control_predecessors:
            before = copies.get(predecessor)
            if before is not None and before in self._made:
                copy.add_control_predecessor(before)
        copies[instruction] = copy
        return copy

    # -- channels ---------------------------------------------------------------------------

    def renew_channel(self, copy: Instruction) -> None:
        """Give a copied collective a channel of its own, if that is asked for.

        Transfers between devices keep theirs; what ends a transfer has the channel of what began
        it.
        """
        if copy.opcode in _TRANSFERS_DONE:
            channel = channel_of(copy.operands[0])
            if channel != channel_of(copy):
                copy.set_attribute("channel_id", None if channel is None else str(channel))
        elif self._unique_channel_id and "channel_id" in copy.attributes:
            is_with_host = has_host_transfer(copy)
            if copy.opcode not in _TRANSFERS or is_with_host:
                copy.set_attribute("channel_id", str(next(self._channels)))

    # -- scheduling groups ------------------------------------------------------------------

    @cached_property
    def _groups(self) -> Iterator[int]:
        used = (group_of(i) for i in self._module.instructions())
        return count(max((group for group in used if group is not None), default=0) + 1)

    def new_groups(self, instructions: Iterable[Instruction]) -> Mapping[int, int]:
        """A group of their own for copies of instructions, by the group of these."""
        groups: dict[int, int] = {}
        for instruction in instructions:
            annotation = annotation_of(instruction)
            group = annotation.group if annotation and annotation.iteration is None else None
            if group is not None and group not in groups:
                groups[group] = next(self._groups)
        return groups

    @staticmethod
    def regroup(copies: Iterable[Instruction], groups: Mapping[int, int]) -> None:
        """Put copies into these groups; those in no such group, or of another trip, into none."""
        for copy in copies:
            annotation = annotation_of(copy)
            if annotation is not None:
                is_here = annotation.iteration is None and annotation.group is not None
                set_group(copy, groups.get(annotation.group or 0) if is_here else None)


def replace_results(
    loop: Instruction,
    reads: Sequence[Instruction],
    results: Mapping[int, Instruction],
    size: int,
) -> None:
    """Let what reads elements of a loop's result, by `reads`, take others instead. O(users).

    A loop that is the root had `size` elements; what it carries besides stays inside.
    """
    if loop.is_root:
        elements = [results.get(i) or read_element(loop, i) for i in range(size)]
        loop.parent.set_root(make_tuple(loop.parent, elements))
    for old in reads:
        result = results.get(old.tuple_index)
        if result is not None:
            old.move_control_dependencies_to(result)
            old.replace_all_uses_with(result)
            loop.parent.remove(old)


def discard(instructions: Sequence[Instruction]) -> None:
    """Remove instructions, which are given operands first, as far as nothing uses them.

    With them goes what only they read, unless it has effects or control dependencies.
    """
    waiting = list(instructions)
    wanted = set(waiting)
    while waiting:
        instruction = waiting.pop()
        is_here = instruction in instruction.parent
        if not is_here or instruction.users or instruction.is_root:
            continue
        if instruction not in wanted and _stays_unread(instruction):
            continue
        operands = instruction.operands
        instruction.parent.remove(instruction)
        waiting += operands


def _stays_unread(instruction: Instruction) -> bool:
    return (
        instruction.opcode is Opcode.PARAMETER
        or bool(instruction.called)
        or instruction.has_control_dependencies
        or has_own_side_effect(instruction)
    )


def integer(like: Instruction, value: int) -> Instruction:
    """A new constant of the type of `like`, beside it."""
    return like.parent.add(Opcode.CONSTANT, like.shape, payload=str(value))


def constant_zero(parent: Computation, shape: Shape) -> Instruction:
    """A new scalar zero."""
    element = shape.element_type
    kind = "" if element is None else element.kind
    payload = {"pred": "false", "complex": "(0, 0)"}.get(kind, "0")
    return parent.add(Opcode.CONSTANT, shape, payload=payload)


def metadata_of(instruction: Instruction) -> dict[str, str]:
    """The metadata of an instruction, for what takes its place."""
    metadata = instruction.attributes.get("metadata")
    return {} if metadata is None else {"metadata": metadata}
