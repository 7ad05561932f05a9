"""Elements of a branch's argument that the branch does not read."""

from __future__ import annotations

from hloopt.diagnostics import part_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.ir.tuples import element, is_only_taken_apart
from hloopt.pass_framework.base import PassContext
from hloopt.passes.control_flow.branches import apart_from_others, callers_of_branch
from hloopt.passes.rewriting.tuples import keep_elements
from hloopt.passes.simplification.dce import DeadCode


def drop_unused_inputs(branch: Computation, dead: DeadCode, context: PassContext) -> None:
    """Let a branch take only the elements it reads, from all conditionals that run it.

    What was computed for the others is removed. A branch that something else calls as well is
    copied. O(elements x conditionals), besides what is copied and removed.
    """
    (parameter,) = branch.parameters
    if not parameter.shape.is_tuple or not is_only_taken_apart(parameter):
        return
    read = sorted({reader.tuple_index for reader in parameter.users})
    count = len(parameter.shape.elements)
    callers = callers_of_branch(branch)
    if len(read) == count or any("sharding" in c.attributes for c, _ in callers):
        return
    unread = f"{part_of(count - len(read), count, 'input')} not read in %{branch.name}"
    if not context.apply(callers[0][0], unread, remark=False):
        return
    own = apart_from_others(branch)
    if own is not branch:
        dead.effects.add_copy(own, branch)
    (parameter,) = own.parameters
    keep_elements(parameter, read)
    for conditional, number in callers:
        context.applied(conditional, unread)
        _pass_only(conditional, number + 1, read, dead)


def _pass_only(conditional: Instruction, number: int, read: list[int], dead: DeadCode) -> None:
    argument = conditional.operands[number]
    elements = [element(argument, i) for i in read]
    shape = tuple_shape(e.shape for e in elements)
    conditional.replace_operand(number, conditional.parent.add(Opcode.TUPLE, shape, elements))
    dead.remove_dead([argument])
