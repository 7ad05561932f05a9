"""Rewriting: operations that all branches end with move behind the conditional."""

from __future__ import annotations

from hloopt.ir.clone import own_computations
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.tuples import read_element
from hloopt.passes.control_flow.conditional_code_motion.boundaries import Boundary, Group
from hloopt.passes.control_flow.conditional_code_motion.own_branches import own_branches
from hloopt.passes.control_flow.conditional_code_motion.results import set_results
from hloopt.passes.rewriting.replace import inherit, remove_unused


def move_out(conditional: Instruction, group: Group) -> None:
    """Let the branches give what they keep, and do behind the conditional what moves.

    The group begins with the roots of the branches. O(its operands x branches + users).
    """
    users, is_root = list(conditional.users), conditional.is_root
    root, roots = group.moved[0].first, group.moved[0]
    element_boundaries = [roots.operand(number) for number in range(len(root.operands))]
    steps = [(boundary, list(boundary.next())) for boundary in group.moved]
    copies = own_branches(conditional)

    def in_branches(boundary: Boundary) -> list[Instruction]:
        return [
            copied.get(instruction, instruction)
            for copied, instruction in zip(copies, boundary.instructions, strict=True)
        ]

    moved = [in_branches(boundary) for boundary in group.moved]
    sharding = conditional.attributes.get("sharding")
    set_results(conditional, [in_branches(boundary) for boundary in group.kept])
    last = {boundary: index for index, boundary in enumerate(group.kept)}
    outside = {boundary: read_element(conditional, index) for boundary, index in last.items()}
    takes_apart = root.opcode is Opcode.TUPLE and not is_root
    """Whether nothing needs the whole result, only its elements."""
    # Users come before their operands in the group.
    for boundary, operands in reversed(steps[1 if takes_apart else 0 :]):
        clone = conditional.parent.add_clone(boundary.first, [outside[o] for o in operands])
        own_computations(clone, loops=True)
        outside[boundary] = clone
    if root.opcode is Opcode.TUPLE:
        for user in users:
            _replace(user, outside[element_boundaries[user.tuple_index]])
    else:
        for user in users:
            user.exchange_operand(conditional, outside[roots])
    if not takes_apart and sharding is not None:
        outside[roots].set_attribute("sharding", sharding)
    if is_root:
        conditional.parent.set_root(outside[roots])
    for number in range(len(copies)):
        remove_unused([instructions[number] for instructions in moved])


def _replace(element: Instruction, clone: Instruction) -> None:
    """Let all users of an element of the conditional use what computes it now."""
    inherit(element, clone)
    element.replace_all_uses_with(clone)
    element.parent.remove(element)
