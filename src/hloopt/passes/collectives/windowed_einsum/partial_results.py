"""Partial results of a loop's dots, added up behind the loop instead of one after another."""

from __future__ import annotations

from hloopt.analysis.loops.sources import source_of
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import array_shape
from hloopt.ir.tuples import read_element
from hloopt.passes.collectives.windowed_einsum.loops import reads_of
from hloopt.passes.rewriting.loop_elements import pass_through
from hloopt.passes.rewriting.replace import remove_unused
from hloopt.passes.rewriting.rules import Builder
from hloopt.passes.rewriting.rules.constants import splat_value

RESULT = 2
"""The element of the state that a loop computes."""


def reduce_behind(loop: Instruction) -> bool | str:
    """Let a loop of one trip hand out the dots that it adds up, and a reduce behind it add them.

    Then the dots do not wait for each other. False if what it computes is no sum of dots; the
    reason if it must stay for another. O(instructions of the body + elements of its state).
    """
    body = loop.called[0]
    dots = _summands(loop)
    if len(dots) < 2:
        return False
    (init,) = loop.operands
    if init.opcode is not Opcode.TUPLE:
        return f"%{init.name} is not a tuple"
    if len(init.users) > 1 or init.is_root:
        return f"%{init.name} has other users"
    if splat_value(init.operands[RESULT]) != 0:
        return f"its sum does not begin with 0, but with %{init.operands[RESULT].name}"
    results = reads_of(loop, RESULT)
    if not results or any(read.has_control_dependencies for read in results):
        return "nothing reads its sum, or control dependencies hold what does"
    inner, outer = Builder(body), Builder(loop.parent)
    one = dots[0].shape
    rows = [inner.reshape(dot, (1, *one.dimensions)) for dot in dots]
    partial = inner.concatenate(rows, 0, array_shape(one.type_name, (len(dots), *one.dimensions)))
    zero = outer.scalar(0, one)
    read = pass_through(loop, outer.fill(zero, partial.shape))
    number = read.tuple_index
    body.root.replace_operand(number, partial)
    remove_unused([read, init])
    collected = read_element(loop, number)
    total = outer.reduce(
        collected, zero, (0,), outer.scalar_computation(Opcode.ADD, one.type_name), one
    )
    for result in results:
        result.replace_all_uses_with(total)
        loop.parent.remove(result)
    return True


def _summands(loop: Instruction) -> list[Instruction]:
    """The dots whose sum with the result of before the loop is its result, in their order."""
    body = loop.called[0]
    dots: list[Instruction] = []
    source = source_of(body.root.operands[RESULT])
    while source.instruction.opcode is Opcode.ADD and not source.path:
        parts = source.instruction.operands
        terms = [part for part in parts if part.opcode is Opcode.DOT]
        if len(terms) != 1 or terms[0].parent is not body:
            return []
        (dot,) = terms
        dots.insert(0, dot)
        source = source_of(parts[1] if parts[0] is dot else parts[0])
    return dots if source.element_of(loop) == RESULT else []
