"""Compute what depends on constants alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hloopt.analysis.calls import callees_first
from hloopt.analysis.equality import Equality
from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.literals.literal import ELIDED
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order
from hloopt.pass_framework.base import ModulePass, PassContext, XlaPass, register
from hloopt.passes.rewriting.replace import replace_instruction
from hloopt.passes.simplification.dce import DeadCode, DeadCodeElimination
from hloopt.passes.simplification.foldable import Foldable, FoldingOptions

if TYPE_CHECKING:
    from hloopt.interpreter.plan import Plans


@register(
    "constant-folding",
    preserves="bits",
    xla=XlaPass("HloConstantFolding", "xla/hlo/transforms/simplifiers/hlo_constant_folding.h"),
)
class ConstantFolding(ModulePass):
    """Replace instructions whose operands are constants by constants.

    An iota, and a broadcast of a constant, count as constants where another operand is one; alone
    they stay, since they are smaller than their values. Calls, fusions and conditionals are
    computed as a whole. A parameter for which all callers pass the same constant becomes that
    constant, where a computation is only called. What is computed is what `hloopt run` computes.

    Loops, random numbers, collectives, custom calls, `fft`, `cholesky`, `triangular-solve` and what
    has control dependencies or dynamic dimensions stay, and so do fusions' insides and dead code.
    Linear in the size of the module and the work of computing.
    """

    Options = FoldingOptions
    options: FoldingOptions

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        folder = _Folder(module, self.options, context)
        live: set[Computation] = set()  # what something runs, once its callers have been folded
        for computation in reversed(callees_first(module)):
            if computation.is_entry or any(c.parent in live for c in computation.callers):
                live.add(computation)
                if not computation.is_fusion:
                    folder.fold(computation)
        return module.version != before


class _Folder:
    def __init__(self, module: Module, options: FoldingOptions, context: PassContext) -> None:
        self.module = module
        self.max_steps = options.max_steps
        self.context = context
        self.equality = Equality(is_layout_sensitive=True)
        self.foldable = Foldable(options)
        self._dead: DeadCode | None = None
        self._plans: Plans | None = None
        """Callers are folded before what they call: no computation runs again after it changed."""

    def fold(self, computation: Computation) -> None:
        """Fold in the computation; its callers have been folded before."""
        before = computation.version
        self._receive_constants(computation)
        if any(i.opcode is Opcode.CONSTANT for i in computation.instructions):
            known = self.foldable.in_computation(computation, self.context)
            if any(known.values()):
                self._replace(computation, known)
        if computation.version != before and self.module.is_scheduled:
            computation.reorder(stable_order(computation))

    def _receive_constants(self, computation: Computation) -> None:
        """Put constants in the place of parameters that are the same constant for all calls."""
        callers = list(computation.callers)
        if not callers or any(caller.opcode is not Opcode.CALL for caller in callers):
            return
        for number, parameter in enumerate(computation.parameters):
            passed = [caller.operands[number] for caller in callers]
            if not (parameter.users or parameter.is_root) or not self._are_equal(passed):
                continue
            if parameter.shape is not passed[0].shape or parameter.has_control_dependencies:
                continue
            if not self.context.apply(parameter, f"all callers pass %{passed[0].name}"):
                return
            constant = computation.add_clone(passed[0], ())
            self.context.count("parameters replaced")
            parameter.replace_all_uses_with(constant)

    def _are_equal(self, passed: list[Instruction]) -> bool:
        """Whether these are constants with the same known value."""
        if any(i.opcode is not Opcode.CONSTANT or ELIDED in i.payload for i in passed):
            return False
        first = self.equality.constant(passed[0])
        return all(self.equality.constant(other) == first for other in passed[1:])

    def _replace(self, computation: Computation, known: dict[Instruction, bool]) -> None:
        """Compute what is known, and let constants stand for what the others use of it."""
        from hloopt.interpreter.plan import Plans
        from hloopt.passes.simplification.constant_values import ConstantValues

        if self._plans is None:
            self._plans = Plans()
        values = ConstantValues(known, self._plans, self.max_steps, self.context.missed)
        values.compute()
        orphans: dict[Instruction, None] = {}
        for instruction, text in values.texts.items():
            if not self.context.apply(instruction, "computed", remark=False):
                break
            constant = computation.add(Opcode.CONSTANT, instruction.shape, payload=text)
            self.context.applied(instruction, f"computed: %{constant.name}")
            self.context.count("instructions folded")
            orphans.update(dict.fromkeys(instruction.operands))
            replace_instruction(instruction, constant)
        if self._dead is None:
            effects = SideEffects(self.module)
            self._dead = DeadCode(effects, DeadCodeElimination.Options(), PassContext())
        self._dead.remove_dead(orphans)
