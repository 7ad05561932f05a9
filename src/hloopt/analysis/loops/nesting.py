"""While loops as they are nested, and the collectives of one run of a body."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import COLLECTIVES, Opcode


def nested_loops(callers_first: Sequence[Computation]) -> Iterator[tuple[Instruction, int]]:
    """All while loops of these computations, each before those in it, with the number of loops
    that it is in. O(instructions).

    A computation with several callers counts as part of what its first caller is in.
    """
    around: dict[Computation, Instruction | None] = {}
    inner: dict[Instruction | None, list[Instruction]] = {}
    for computation in callers_first:
        own = around.setdefault(computation, None)
        for instruction in computation.instructions:
            is_loop = instruction.opcode is Opcode.WHILE
            if is_loop:
                inner.setdefault(own, []).append(instruction)
            for callee in instruction.called:
                around.setdefault(callee, instruction if is_loop else own)
    stack = [(loop, 0) for loop in reversed(inner.get(None, ()))]
    while stack:
        loop, depth = stack.pop()
        yield loop, depth
        stack += [(other, depth + 1) for other in reversed(inner.get(loop, ()))]


def collectives_by_run(
    callers_first: Sequence[Computation],
) -> dict[Computation, dict[str, int]]:
    """Collectives that a run of each computation starts by opcode, with those of calls, without
    those of loops in it. O(instructions)."""
    found: dict[Computation, dict[str, int]] = {}
    for computation in reversed(callers_first):
        counts = found[computation] = {}
        for instruction in computation.instructions:
            opcode = instruction.opcode
            if opcode in COLLECTIVES and not opcode.endswith("-done"):
                counts[opcode.value] = counts.get(opcode.value, 0) + 1
            elif instruction.called and opcode is not Opcode.WHILE:
                for callee in instruction.called:
                    for name, count in found[callee].items():
                        counts[name] = counts.get(name, 0) + count
    return found
