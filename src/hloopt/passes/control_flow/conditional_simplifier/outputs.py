"""Outputs of a conditional that are the same as others, or that nobody reads."""

from __future__ import annotations

from hloopt.diagnostics import part_of
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.ir.tuples import element, is_only_taken_apart, make_tuple
from hloopt.pass_framework.base import PassContext
from hloopt.passes.control_flow.branches import own_branches
from hloopt.passes.rewriting.tuples import keep_elements
from hloopt.passes.simplification.dce import DeadCode


def merge_duplicate_outputs(conditional: Instruction, context: PassContext) -> None:
    """Let readers of an output read the first one that is the same value in every branch.

    Only between outputs of tuple instructions. O(outputs x branches + users).
    """
    roots = [branch.root for branch in conditional.called]
    if not is_only_taken_apart(conditional) or any(r.opcode is not Opcode.TUPLE for r in roots):
        return
    outputs = zip(conditional.shape.elements, *(root.operands for root in roots), strict=True)
    first: dict[tuple[object, ...], int] = {}
    same_as = [first.setdefault(values, i) for i, values in enumerate(outputs)]
    for reader in conditional.users:
        index = same_as[reader.tuple_index]
        if index != reader.tuple_index:
            if not context.apply(reader, f"reads output {index}, which is the same"):
                return
            reader.set_attribute("index", str(index))


def drop_unused_outputs(
    conditional: Instruction, dead: DeadCode, context: PassContext
) -> list[Computation]:
    """Let the branches give only what is read, and remove what was computed for the rest.

    A conditional that nothing reads, but that has a side effect, gives an empty tuple. Branches
    that something else calls as well are copied; returns the copies. O(outputs x branches +
    users), besides what is copied and removed.
    """
    if not is_only_taken_apart(conditional) or not (
        conditional.users or dead.effects.of(conditional)
    ):
        return []
    read = sorted({reader.tuple_index for reader in conditional.users})
    shape = conditional.shape
    if shape.is_tuple and len(read) == len(shape.elements):
        return []
    count = len(shape.elements) or 1
    what = f"{part_of(count - len(read), count, 'output')} not read"
    if not context.apply(conditional, what):
        return []
    copies = own_branches(conditional)
    for original, copy in copies.items():
        dead.effects.add_copy(copy, original)
    for branch in dict.fromkeys(conditional.called):
        root = branch.root
        outputs = [element(root, i) for i in read]
        branch.set_root(make_tuple(branch, outputs))
        dead.remove_dead([root])
    keep_elements(conditional, read)
    return list(copies.values())
