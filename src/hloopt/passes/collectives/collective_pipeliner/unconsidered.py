"""The reason why collectives in loops are not even looked at, for remarks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hloopt.analysis.async_operations import SYNC_COLLECTIVES, async_form
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import STARTS, Opcode
from hloopt.passes.collectives.collective_pipeliner.options import PipelinerOptions


def unconsidered(loops: Iterable[Instruction], options: PipelinerOptions) -> dict[Instruction, str]:
    """The collectives that stay in loops because of their kind or place, with the reason.

    O(bodies and what they call).
    """
    found: dict[Instruction, str] = {}
    for loop in loops:
        body = loop.called[0]
        for instruction in body.instructions:
            reason = _reason(instruction, options)
            if reason is not None:
                found[instruction] = reason
        for called, reason in _called_in(body):
            inside = filter(options.processes, called.instructions)
            found.update(dict.fromkeys(inside, reason))
    return found


def _reason(instruction: Instruction, options: PipelinerOptions) -> str | None:
    """The reason why the options do not pick a collective; None if they do, or if a user chose
    others."""
    opcode, picked = instruction.opcode, options.opcodes
    if opcode in STARTS:
        if async_form(instruction).inner not in picked:
            return None
        return "it is asynchronous already: run this pass before async-collective-creator"
    if opcode in picked and not options.processes(instruction):
        return "only_marked is on, and it has no frontend attribute is_pipelineable"
    if opcode in SYNC_COLLECTIVES and opcode not in picked and options.should_process is None:
        names = " and ".join(picked)
        return (
            f"should_process is for {names}, unless it is given; "
            f"pipelining_direction is {options.pipelining_direction}"
        )
    return None


def _called_in(body: Computation) -> Iterator[tuple[Computation, str]]:
    """The collectives within calls, fusions and conditionals of a body, each once, with the
    reason."""
    seen: set[Computation] = set()
    waiting = [body]
    while waiting:
        for call in waiting.pop().instructions:
            if call.opcode is Opcode.CALL:
                why = "which %{} calls: inline that first"
            elif call.opcode is Opcode.FUSION:
                why = "which the fusion %{} runs as one: run this pass before fusion"
            elif call.opcode is Opcode.CONDITIONAL:
                why = "a branch of the conditional %{}, which not every trip takes"
            else:
                continue
            for called in call.called:
                if called not in seen:
                    seen.add(called)
                    waiting.append(called)
                    yield called, f"it is in %{called.name}, {why.format(call.name)}"
