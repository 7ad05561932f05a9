"""Applying rules to a computation until none applies: a sweep, then only what may have changed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hloopt.analysis.calls import callees_first, calls_by_computation
from hloopt.analysis.side_effects import SideEffects
from hloopt.collector import collector_paused
from hloopt.diagnostics import LiteralError, counted
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import depth_first, stable_order
from hloopt.ir.shapes.shape import compatible
from hloopt.pass_framework.base import PassContext
from hloopt.passes.rewriting.replace import (
    control_dependencies_can_move,
    replace_instruction,
    shardings_differ,
)
from hloopt.passes.rewriting.rules.build import Builder, MustStay
from hloopt.passes.rewriting.rules.pattern import INDEXED
from hloopt.passes.rewriting.rules.rule import (
    Candidates,
    Edited,
    Match,
    Missed,
    Result,
    Rule,
    RuleTable,
    has_dynamic_shape,
)
from hloopt.preserves import Preserves

MOST_SWEEPS = 50
_UP = 3
"""How far above a change a pattern may look down on it."""
_FEW = 8
"""Users of a value that are looked at again after one of them has gone."""
_BY_LAYOUT = frozenset((Opcode.BITCAST, Opcode.CUSTOM_CALL, Opcode.FUSION, Opcode.CALL))
"""Users that read bytes of a value, or hand it to what may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The way in which rules are applied."""

    options: object = None
    """Given to each rule, as `match.options`."""
    layout_sensitive: bool = False
    preserve: Preserves = "finite"
    """Rules that keep less of the results are left out."""
    max_sweeps: int = MOST_SWEEPS
    """The first sweep visits all instructions, the following ones only those near changes."""
    match_class: type[Match] = Match


class RuleEngine:
    """Applies a table of rules to computations of one module."""

    def __init__(
        self, module: Module, table: RuleTable, context: PassContext, settings: Settings
    ) -> None:
        self._module = module
        self._table = table
        self._context = context
        self._settings = settings
        self._preserve = settings.preserve
        self._effects = SideEffects(module)
        self._touched: dict[Instruction, None] = {}
        self._reducers: dict[tuple[str, str], Computation] = {}
        self._unused: Match | None = None
        self._reported: set[tuple[Instruction, Rule]] = set()

    def run_all(self) -> bool:
        """Apply rules to all computations but fusions, callees first; whether one applied."""
        changed = False
        with collector_paused():
            calls = calls_by_computation(self._module, lambda computation: computation.instructions)
            for computation in callees_first(self._module, calls):
                if not computation.is_fusion:
                    changed = self.run(computation) or changed
        return changed

    def run(self, computation: Computation) -> bool:
        """Apply rules, operands first, until none applies; whether one did.

        New instructions, and those near a change, are visited in the next sweep. O(instructions)
        plus O(neighbours) for each rewrite.
        """
        if not self._has_work(computation):
            return False
        changed = False
        fitting = self._table.fitting
        work = stable_order(computation)
        for _ in range(self._settings.max_sweeps):
            self._touched = {}
            for instruction, rules in fitting(work):
                if self._visit(instruction, rules):
                    changed = True
            if not self._touched or self._context.is_at_limit:
                break
            work = self._in_order(computation)
        else:
            if self._settings.max_sweeps > 1:
                sweeps = counted(self._settings.max_sweeps, "sweep")
                self._context.note(f"%{computation.name} still changed after {sweeps}")
        if changed and computation.module.is_scheduled:
            computation.reorder(stable_order(computation))
        return changed

    def _has_work(self, computation: Computation) -> bool:
        return next(self._table.fitting(computation.instructions), None) is not None

    def _in_order(self, computation: Computation) -> list[Instruction]:
        """The touched instructions that are still there, operands before users."""
        touched = dict.fromkeys(computation.holding(self._touched))
        is_touched = touched.__contains__
        return depth_first(touched, lambda i: filter(is_touched, i.operands))

    # -- one instruction ----------------------------------------------------------------------

    def _visit(self, root: Instruction, rules: Candidates) -> bool:
        if self._touched and _is_gone(root):
            return False
        match: Match | None = None
        preserve, applications = self._preserve, self._context.applications
        for rule, pattern in rules:
            found = pattern.match(root)
            if found is None:
                continue
            many = root.operands[INDEXED:]
            if many and not rule.dynamic and has_dynamic_shape(root, many):
                continue
            if preserve != "finite" and not rule.keeps(root, preserve):
                self._missed(root, rule, f"it keeps results only up to '{rule.floats}'")
                continue
            if match is None:
                if applications.is_at_limit:
                    return False
                match = self._match_at(root)
            match.bind(found)
            if self._try(match, rule):
                return True
        return False

    def _match_at(self, root: Instruction) -> Match:
        """The match that rules get, one after the other, until one applies: then a new one."""
        match, settings = self._unused, self._settings
        if match is None or match.build.computation is not root.parent:
            build = Builder(root.parent, reducers=self._reducers)
            match = self._unused = settings.match_class(
                root, {}, build, settings.options, settings.layout_sensitive
            )
        match.root = root
        return match

    def _try(self, match: Match, rule: Rule) -> bool:
        root, build = match.root, match.build
        build.only_existing = root.has_control_dependencies and not rule.moves_control
        try:
            result = rule.rewrite(match)
        except MustStay:
            result = Missed("it has control dependencies, which a new instruction does not get")
        except LiteralError as error:  # a value that its type does not hold
            result = Missed(error.message)
        if result is not None and isinstance(result, Instruction):
            result = self._checked(root, result, build)
        if result is None or isinstance(result, Missed):
            if result is not None:
                self._missed(root, rule, result.reason)
            if build.made:
                self._discard(build.made)
            if match.touched:
                match.touched.clear()
            return False
        self._unused = None
        self._apply(root, rule, result, match)
        return True

    def _missed(self, root: Instruction, rule: Rule, reason: str) -> None:
        if self._context.wants_remarks and (root, rule) not in self._reported:
            self._reported.add((root, rule))
            self._context.missed(root, f"{rule.name}: {reason}")

    def _checked(self, root: Instruction, new: Instruction, build: Builder) -> Result:
        """`new` with the shape of the root, or the reason why it cannot stand for that."""
        if new is root:
            return None
        if new.shape is not root.shape:
            if not compatible(new.shape, root.shape):
                return None
            if new in build.made and new.opcode is not Opcode.BITCAST:
                new.set_shape(root.shape)
            elif self._settings.layout_sensitive:
                return Missed(f"the layout of %{new.name} differs")
            elif any(user.opcode in _BY_LAYOUT for user in root.users):
                return Missed(f"the layout of %{new.name} differs, and a user depends on it")
        if new not in build.made and shardings_differ(root, new):
            return Missed(f"its sharding differs from that of %{new.name}")
        if not control_dependencies_can_move(root, new):
            return Missed(f"a control predecessor of it may depend on %{new.name}")
        return new

    def _apply(
        self, root: Instruction, rule: Rule, result: Instruction | Edited, match: Match
    ) -> None:
        context = self._context
        context.apply(root, rule.name, remark=False)
        context.count(rule.name)
        touched = self._touched
        made = [i for i in match.build.made if not _is_gone(i)]
        for instruction in made:
            touched[instruction] = None
        for neighbour in (*made, *match.touched):
            for operand in neighbour.operands:
                touched[operand] = None
        for instruction in match.touched:
            touched[instruction] = None
        if isinstance(result, Edited):
            context.applied(root, rule.name)
            self._touch_users([root, *match.touched])
            self._remove_dead([root, *match.touched, *made])
            return
        if context.wants_remarks:
            context.applied(root, f"{rule.name}: replaced by %{result.name}")
        orphans = list(dict.fromkeys(root.operands))
        is_renamed = result in match.build.made and _keeps_name(root, result)
        replace_instruction(root, result)
        if is_renamed:
            result.take_name(root.name)
        self._touch_users([result])
        self._remove_dead([*orphans, *made])

    # -- what changed -------------------------------------------------------------------------

    def _touch_users(self, changed: Iterable[Instruction]) -> None:
        """Look again at the users of what changed, and at theirs where they are few."""
        touched = self._touched
        level: Iterable[Instruction] = changed
        for distance in range(_UP):
            above: dict[Instruction, None] = {}
            for instruction in level:
                users = instruction.users
                if users and (not distance or len(users) <= _FEW):
                    above.update(users)
            if distance == 0:
                for user in above:
                    for operand in user.operands[:_FEW]:
                        touched[operand] = None
            touched.update(above)
            level = above

    def _remove_dead(self, candidates: Iterable[Instruction]) -> None:
        """Remove what nothing needs any more; what lost a user is looked at again."""
        stack = list(candidates)
        touched = self._touched
        while stack:
            instruction = stack.pop()
            users = instruction.users
            if _is_gone(instruction):
                continue
            if users or not self._is_dead(instruction):
                if len(users) <= _FEW:
                    touched[instruction] = None
                    touched.update(users)
            else:
                stack += dict.fromkeys(instruction.operands)
                instruction.parent.remove(instruction)
                touched.pop(instruction, None)

    def _is_dead(self, instruction: Instruction) -> bool:
        """Whether an instruction without users is not needed for another reason."""
        return not (
            instruction.is_root
            or instruction.opcode is Opcode.PARAMETER
            or instruction.has_control_dependencies
            or (
                instruction.opcode is Opcode.CUSTOM_CALL
                and custom_call_target(instruction) == "Sharding"
            )
            or self._effects.of(instruction)
        )

    def _discard(self, made: list[Instruction]) -> None:
        """Remove what a rule made that did not apply after all."""
        for instruction in reversed(made):
            if instruction in instruction.parent and not instruction.users:
                instruction.parent.remove(instruction)
        made.clear()


def _is_gone(instruction: Instruction) -> bool:
    """Whether an instruction has been removed, as only one without users can be."""
    return not instruction.users and instruction not in instruction.parent


def _keeps_name(old: Instruction, new: Instruction) -> bool:
    """Whether a new instruction takes the name of the old one: it does the same."""
    return old.opcode is new.opcode and (
        old.opcode is not Opcode.CUSTOM_CALL or custom_call_target(old) == custom_call_target(new)
    )
