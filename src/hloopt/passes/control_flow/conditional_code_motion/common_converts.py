"""Converts that all branches end with move behind the conditional, whatever is before them."""

from __future__ import annotations

from collections import Counter

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.tuples import make_tuple, read_element
from hloopt.passes.control_flow.conditional_code_motion.movable import Sameness
from hloopt.passes.control_flow.conditional_code_motion.results import set_results
from hloopt.passes.rewriting.replace import inherit, remove_unused


def common_converts(conditional: Instruction, sameness: Sameness) -> list[int]:
    """The results of a conditional that each of its branches converts alike.

    None where a branch is shared or gives no tuple instruction. O(results x branches).
    """
    branches = conditional.called
    if any(
        sum(branch.callers.values()) > 1 or branch.root.opcode is not Opcode.TUPLE
        for branch in branches
    ):
        return []
    times = [Counter(branch.root.operands) for branch in branches]
    found = []
    for index in range(len(branches[0].root.operands)):
        converts = [branch.root.operands[index] for branch in branches]
        if (
            all(each.opcode is Opcode.CONVERT for each in converts)
            and len({sameness.shape(each.shape) for each in converts}) == 1
            and len({sameness.shape(each.operands[0].shape) for each in converts}) == 1
            and not any(map(_is_beside_a_convert, converts))
            and all(count[each] == 1 for count, each in zip(times, converts, strict=True))
            and not any(each.has_control_dependencies for each in converts)
        ):
            found.append(index)
    return found


def _is_beside_a_convert(convert: Instruction) -> bool:
    return any(other.opcode is Opcode.CONVERT for other in (convert.operands[0], *convert.users))


def move_converts_out(conditional: Instruction, indices: list[int]) -> None:
    """Let the branches give what they convert, and convert it behind the conditional.

    O(results x branches + users).
    """
    users, is_root, shape = list(conditional.users), conditional.is_root, conditional.shape
    attributes = conditional.attributes
    branches = conditional.called
    old_roots = [branch.root for branch in branches]
    converted = set(indices)
    results = [
        [_source(branch, index, index in converted) for branch in branches]
        for index in range(len(shape.elements))
    ]
    set_results(conditional, results)
    elements = [read_element(conditional, index) for index in range(len(results))]
    for index in indices:
        convert = old_roots[0].operands[index]
        elements[index] = conditional.parent.add_clone(convert, [elements[index]])
    for user in users:
        inherit(user, elements[user.tuple_index])
        user.replace_all_uses_with(elements[user.tuple_index])
        user.parent.remove(user)
    if is_root:
        whole = make_tuple(conditional.parent, elements)
        if "sharding" in attributes:
            whole.set_attribute("sharding", attributes["sharding"])
        conditional.parent.set_root(whole)
    converts = [root.operands[index] for root in old_roots for index in indices]
    remove_unused([*old_roots, *converts])


def _source(branch: Computation, index: int, is_converted: bool) -> Instruction:
    """The value that a branch gives for a result, before it is converted."""
    given = branch.root.operands[index]
    return given.operands[0] if is_converted else given
