"""Let conditionals take tuples and give tuples."""

from __future__ import annotations

from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import repair_schedule
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.ir.tuples import make_tuple
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.control_flow.branches import (
    apart_from_others,
    branches_of,
    callers_of_branch,
    runs_asynchronously,
)
from hloopt.passes.rewriting.tuples import wrap


@register(
    "conditional-canonicalizer",
    preserves="bits",
    xla=XlaPass(
        "ConditionalCanonicalizer", "xla/hlo/transforms/simplifiers/conditional_canonicalizer.h"
    ),
)
class ConditionalCanonicalizer(ModulePass):
    """Put arguments and results of conditionals that are no tuples into tuples of one element.

    Other passes over conditionals then have one form to deal with. A branch that something else
    calls as well is copied for the conditionals. A conditional that runs asynchronously stays as
    it is. Linear in the size of the module.
    """

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        touched: dict[Computation, None] = {}
        branches = [branch for branch in branches_of(module) if not _is_canonical(branch)]
        # One application: a branch gives what its conditionals give, and these what all others do.
        what = "branches of conditionals take and give tuples"
        if branches and not context.apply(branches[0].root, what, remark=False):
            return False
        for branch in branches:
            own = apart_from_others(branch)
            touched[own] = None
            _canonicalize_branch(own)
            for conditional, number in callers_of_branch(own):
                touched[conditional.parent] = None
                _canonicalize_argument(conditional, number + 1)
        for conditional in list(module.instructions(Opcode.CONDITIONAL)):
            if runs_asynchronously(conditional):
                context.missed(conditional, "it runs asynchronously")
            elif not conditional.shape.is_tuple:
                value = wrap(conditional)
                context.applied(conditional, f"gives a tuple, %{value.name} is its element")
        repair_schedule(touched)
        return module.version != before


def _is_canonical(branch: Computation) -> bool:
    """Whether a branch takes a tuple and gives one."""
    return branch.parameters[0].shape.is_tuple and branch.root.shape.is_tuple


def _canonicalize_branch(branch: Computation) -> None:
    (parameter,) = branch.parameters
    if not parameter.shape.is_tuple:
        wrap(parameter)
    root = branch.root
    if not root.shape.is_tuple:
        branch.set_root(make_tuple(branch, [root]))


def _canonicalize_argument(conditional: Instruction, number: int) -> None:
    argument = conditional.operands[number]
    if not argument.shape.is_tuple:
        shape = tuple_shape((argument.shape,))
        packed = conditional.parent.add(Opcode.TUPLE, shape, [argument])
        conditional.replace_operand(number, packed)
