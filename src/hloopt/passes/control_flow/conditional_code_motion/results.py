"""The results of a conditional, where its branches get new roots."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.ir.instruction import Instruction
from hloopt.ir.tuples import make_tuple
from hloopt.passes.rewriting.replace import forget_value


def set_results(conditional: Instruction, results: Sequence[Sequence[Instruction]]) -> None:
    """Let a conditional give a tuple: of each result, what each branch gives for it.

    Its shape and sharding become those of branch 0; old roots stay where they are. O(results x
    branches).
    """
    roots = []
    for number, branch in enumerate(conditional.called):
        root = make_tuple(branch, [values[number] for values in results])
        shardings = [element.attributes.get("sharding") for element in root.operands]
        if root.operands and None not in shardings:
            root.set_attribute("sharding", f"{{{','.join(map(str, shardings))}}}")
        branch.set_root(root)
        roots.append(root)
    conditional.set_shape(roots[0].shape)
    forget_value(conditional)
    if "sharding" in roots[0].attributes:
        conditional.set_attribute("sharding", roots[0].attributes["sharding"])
