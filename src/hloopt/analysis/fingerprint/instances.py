"""Digests that tell instructions of equal value apart by who reads which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from hloopt.analysis.fingerprint.digests import digest_of
from hloopt.ir.instruction import Instruction

_CONTROL = 0xFFFFFFFF
"""A place that no operand has."""


def tell_apart(
    order: Sequence[Instruction], values: Mapping[Instruction, bytes], *, counts_control: bool
) -> dict[Instruction, bytes]:
    """Digests of instructions as instances: two negations of one parameter, each with a user,
    are not one negation with two.

    `order` has operands first; `values` are digests of what each computes. Where a value has one
    instance its digest stands for it. The others are told apart by their users, last ones first,
    then by their operands, first ones first: two sweeps, so instances are alike in some graphs
    with many equal instructions, all with as many equal users. O(edges · log).
    """
    counts = Counter(map(values.__getitem__, order))
    if len(counts) == len(order):
        return dict(values)
    copies = {instruction for instruction in order if counts[values[instruction]] > 1}
    found = _by_users(order, values, copies, counts_control)
    for instruction in order:
        if instruction in copies:
            found[instruction] = _by_operands(instruction, found, counts_control)
    return found


def _by_users(
    order: Sequence[Instruction],
    values: Mapping[Instruction, bytes],
    copies: set[Instruction],
    counts_control: bool,
) -> dict[Instruction, bytes]:
    found = dict(values)
    uses: dict[Instruction, list[bytes]] = {instruction: [] for instruction in copies}
    for user in reversed(order):
        if user in copies:
            root = b"r" if user.is_root else b"-"
            found[user] = digest_of(b"u", values[user] + root + b"".join(sorted(uses[user])))
        for place, operand in enumerate(user.operands):
            if operand in copies:
                uses[operand].append(found[user] + place.to_bytes(4, "big"))
        if counts_control:
            for before in user.control_predecessors:
                if before in copies:
                    uses[before].append(found[user] + _CONTROL.to_bytes(4, "big"))
    return found


def _by_operands(
    instruction: Instruction, found: Mapping[Instruction, bytes], counts_control: bool
) -> bytes:
    parts = [found[instruction], *(found[operand] for operand in instruction.operands)]
    if counts_control and instruction.control_predecessors:
        parts += sorted(found[before] for before in instruction.control_predecessors)
    return digest_of(b"d", b"".join(parts))
