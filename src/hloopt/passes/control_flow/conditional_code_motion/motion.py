"""Move operations out of conditionals, or into them."""

from __future__ import annotations

from dataclasses import dataclass

from hloopt.analysis.side_effects import SideEffects
from hloopt.diagnostics import counted
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import computation_post_order, post_order, repair_schedule
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.control_flow.branches import runs_asynchronously
from hloopt.passes.control_flow.conditional_code_motion.benefit import Benefit
from hloopt.passes.control_flow.conditional_code_motion.boundaries import Group, Position
from hloopt.passes.control_flow.conditional_code_motion.common_converts import (
    common_converts,
    move_converts_out,
)
from hloopt.passes.control_flow.conditional_code_motion.facts import Facts
from hloopt.passes.control_flow.conditional_code_motion.movable import Movability, Sameness
from hloopt.passes.control_flow.conditional_code_motion.move_operands_in import move_operands_in
from hloopt.passes.control_flow.conditional_code_motion.move_out import move_out
from hloopt.passes.control_flow.conditional_code_motion.move_users_in import (
    move_users_in,
    why_no_users,
)
from hloopt.passes.control_flow.conditional_code_motion.own_branches import own_branches
from hloopt.passes.control_flow.conditional_code_motion.search import (
    Decision,
    Outfeeds,
    Search,
)
from hloopt.passes.control_flow.conditional_code_motion.tuning import (
    Tuning,
    read_configurations,
)
from hloopt.passes.simplification.dce import DeadCodeElimination
from hloopt.passes.simplification.tuple_simplifier import TupleSimplifier


@register(
    "conditional-code-motion",
    preserves="bits",
    xla=XlaPass(
        "conditional_opt::ConditionalCodeMotion",
        "xla/service/conditional_code_motion.h",
        compared="tests",
    ),
)
class ConditionalCodeMotion(ModulePass):
    """Move operations across the border of a conditional, where fewer values cross it then.

    - Operations that all branches end with are done once, behind the conditional.
    - Users of its results are done in the branches, beside what they may be fused with.
    - Operands that not all branches use are computed in those that do.

    Of the groups of operations that can move, those of one direction do, outwards before inwards
    where the benefit is the same. Branches that something else runs as well are copied. Where
    nothing of all that is worth while, converts that all branches end with move out alone.

    Elementwise operations, and those that reshape, slice, pad, gather or reduce move; dots,
    convolutions and loops stay. All-reduces and reduce-scatters move out only, other operations
    with side effects, control dependencies or two parts not at all. A conditional that runs
    asynchronously, or whose whole result something uses, is left alone. Here hloopt is stricter
    than XLA: nothing moves into a conditional that gives the result of its computation, nor out of
    one where a branch would go on to communicate by itself, and no result leaves a conditional that
    something else still reads.

    Dead code and tuples that are taken apart are removed afterwards in the whole module. Linear in
    the size of what is looked at, times the branches, and of what is copied.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        is_layout_sensitive: bool = option(True, "take shapes with different layouts for different")
        pursue_full_conditional_code_motion: bool = option(
            True, "move common converts out where nothing else moves"
        )
        search_config: int | str = option(
            0, "decisions to turn round, to find better ones by trying: `index,start,max,stride;…` "
            "for conditionals by number, or an integer that packs these for the first; 0: none"
        )  # fmt: skip
        memory_increase_allowance: int = option(
            5000, "the memory that an operation that moves may take, in units of 512 bytes"
        )

    options: Options

    def __init__(self, options: PassOptions | None = None) -> None:
        super().__init__(options)
        read_configurations(self.options.search_config)

    def run(self, module: Module, context: PassContext) -> bool:
        conditionals = _conditionals(module)
        if not conditionals:
            return False
        before = module.version
        motion = _Motion(module, self.options, context)
        for conditional in conditionals:
            if conditional in conditional.parent and not motion.consider(conditional):
                break
        if module.version == before:
            return False
        quiet = PassContext(context.pass_name, wants_remarks=False)
        DeadCodeElimination().run(module, quiet)
        TupleSimplifier().run(module, quiet)
        DeadCodeElimination().run(module, quiet)
        repair_schedule(module.computations.values())
        return True


def _conditionals(module: Module) -> list[Instruction]:
    """All conditionals, those in callees before those in callers. O(instructions)."""
    computations = set(module.computations_with(Opcode.CONDITIONAL))
    return [
        instruction
        for computation in (computation_post_order(module) if computations else ())
        if computation in computations
        for instruction in post_order(computation)
        if instruction.opcode is Opcode.CONDITIONAL
    ]


def _why_untouchable(conditional: Instruction) -> str | None:
    """The reason why a conditional is not looked at, or None where it is."""
    if runs_asynchronously(conditional):
        return "it runs asynchronously"
    if not conditional.shape.is_tuple:
        return None
    for user in conditional.users:
        if user.opcode is not Opcode.GET_TUPLE_ELEMENT:
            return f"%{user.name} uses its whole result"
        if user.has_control_dependencies:
            return f"%{user.name}, which reads it, has control dependencies"
    return None


class _Motion:
    """Moves operations across the borders of the conditionals of a module."""

    def __init__(
        self, module: Module, options: ConditionalCodeMotion.Options, context: PassContext
    ) -> None:
        self._options = options
        self._context = context
        self._effects = SideEffects(module)
        self._outfeeds = Outfeeds()
        self._sameness = Sameness(is_layout_sensitive=options.is_layout_sensitive)
        self._configurations = read_configurations(options.search_config)
        self._number = -1
        """The number of the conditional among those that are looked at."""

    def consider(self, conditional: Instruction) -> bool:
        """Move what is worth moving at one conditional; False at the limit of applications."""
        if reason := _why_untouchable(conditional):
            self._context.missed(conditional, reason)
            return True
        self._number += 1
        decision = self._decide(conditional)
        groups, reason = decision.groups, why_no_users(conditional)
        if reason and any(group.position is Position.USER for group in groups):
            self._context.missed(conditional, f"nothing moves in from behind it: {reason}")
            groups = [group for group in groups if group.position is not Position.USER]
        for instruction, why in decision.reasons.items():
            self._context.missed(instruction, f"not moved across %{conditional.name}: {why}")
        if groups:
            return self._move(conditional, groups)
        if decision.groups or self._configurations:
            return True
        if not self._options.pursue_full_conditional_code_motion:
            return True
        return self._move_converts(conditional)

    def _decide(self, conditional: Instruction) -> Decision:
        configurations = self._configurations.get(self._number)
        tuning = Tuning(configurations) if configurations else None
        facts = Facts(conditional)
        visits: dict[Instruction, int] = {}
        return Search(
            facts,
            Movability(conditional, self._sameness, self._effects, tuning),
            self._sameness,
            Benefit(facts, visits, tuning),
            visits,
            self._options.memory_increase_allowance,
            self._outfeeds.any_in(conditional.called),
        ).decide()

    def _move(self, conditional: Instruction, groups: list[Group]) -> bool:
        is_out = groups[0].moves_out
        count = sum(len(group.moved) for group in groups)
        where = "out of" if is_out else "into"
        what = f"{counted(count, 'operation')} moved {where} its branches"
        if not self._context.apply(conditional, what):
            return False
        self._context.count(f"operations moved {'out' if is_out else 'in'}", count)
        if is_out:
            move_out(conditional, groups[0])
        else:
            own_branches(conditional)
            move_users_in(conditional, groups)
            move_operands_in(conditional, groups)
        self._sameness.forget(conditional)
        return True

    def _move_converts(self, conditional: Instruction) -> bool:
        indices = common_converts(conditional, self._sameness)
        if not indices:
            return True
        what = f"{counted(len(indices), 'common convert')} moved out of its branches"
        if not self._context.apply(conditional, what):
            return False
        self._context.count("operations moved out", len(indices))
        move_converts_out(conditional, indices)
        self._sameness.forget(conditional)
        return True
