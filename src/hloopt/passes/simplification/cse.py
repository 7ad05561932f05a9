"""Compute once what is computed several times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hloopt.analysis.calls import callees_first
from hloopt.analysis.equality import Equality, Key
from hloopt.analysis.side_effects import SideEffects
from hloopt.ir.attributes.values import parse_frontend_attributes
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import post_order, stable_order
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.rewriting.replace import replace_instruction
from hloopt.passes.simplification.dce import DeadCode, DeadCodeElimination

Predicate = Callable[[Instruction], bool]


@register(
    "cse",
    preserves="bits",
    xla=XlaPass("HloCSE", "xla/service/hlo_cse.h"),
)
class CommonSubexpressionElimination(ModulePass):
    """Replace each instruction by an earlier one that computes the same.

    Equal means: opcode, shape, attributes (metadata aside), sharding, called computations up to
    names, and operands, in any order where that does not matter. Constants are merged by value.
    Instructions with side effects or control dependencies stay. Linear in the module's size.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        is_layout_sensitive: bool = option(
            False, "shapes with different layouts are different; always so beside bitcasts"
        )
        ignore_control_dependencies: bool = option(
            False, "also merge instructions with control dependencies, which are dropped"
        )
        should_eliminate_computation: Callable[[Computation], bool] | None = option(
            None, "whether to look into a computation"
        )
        should_eliminate_instruction: Predicate | None = option(
            None,
            "whether to merge an instruction with an equal one, in place of the default rule; not "
            "asked for parameters, and for constants (see should_combine_constant)",
        )
        should_combine_constant: Predicate | None = option(None, "whether to merge a constant")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        merger = _Merger(module, self.options, context)
        wanted = self.options.should_eliminate_computation
        for computation in callees_first(module):
            if wanted is None or wanted(computation):
                merger.merge(computation)
        return module.version != before


def may_be_merged(instruction: Instruction, effects: SideEffects) -> bool:
    """Whether cse merges an instruction with an equal one by default. O(1)."""
    frontend = instruction.attributes.get("frontend_attributes")
    hints = {} if frontend is None else parse_frontend_attributes(frontend)
    if not instruction.operands and not (
        instruction.opcode in (Opcode.PARTITION_ID, Opcode.REPLICA_ID)
        or "_xla_cse_safe_zero_operand" in hints
    ):
        return False
    return "MUST_FUSE" not in hints and not effects.of(instruction)


class _Merger:
    def __init__(
        self, module: Module, options: CommonSubexpressionElimination.Options, context: PassContext
    ) -> None:
        self.options = options
        self.context = context
        self.effects = SideEffects(module)
        self.dead = DeadCode(self.effects, DeadCodeElimination.Options(), PassContext())
        # What a bitcast gives depends on the layout of its operand and on its own.
        has_bitcasts = any(True for _ in module.instructions(Opcode.BITCAST))
        self.equality = Equality(is_layout_sensitive=options.is_layout_sensitive or has_bitcasts)

    def merge(self, computation: Computation) -> None:
        """Merge what is equal in the computation; its callees are merged already."""
        before = computation.version
        self._merge_constants(computation)
        self._merge_instructions(computation)
        if computation.version != before:
            self.equality.forget(computation)

    def _merge_constants(self, computation: Computation) -> None:
        constants = [i for i in computation.instructions if i.opcode is Opcode.CONSTANT]
        if len(constants) < 2 or _has_domains(computation):
            return
        combine = self.options.should_combine_constant
        first: dict[Key, Instruction] = {}
        for constant in constants:
            if combine is not None and not combine(constant):
                continue
            earlier = first.setdefault(self.equality.constant(constant), constant)
            if earlier is not constant and not constant.has_control_dependencies:
                self._replace(constant, earlier)

    def _merge_instructions(self, computation: Computation) -> None:
        iotas = _Iotas(self.equality, self.context)
        seen: dict[Key, list[Instruction]] = {}
        in_order = stable_order if computation.module.is_scheduled else post_order
        for instruction in in_order(computation):
            if instruction not in computation:  # died with an instruction merged before
                continue
            iotas.merge_operands(instruction)
            self._redirect_duplicate_outputs(instruction)
            if not self._is_eligible(instruction):
                continue
            key = (
                self.equality.operation(instruction),
                self.equality.operands(instruction, iotas.stand_in),
            )
            candidates = seen.setdefault(key, [])
            for earlier in candidates:
                if self.equality.same_callees(instruction, earlier):
                    self._replace(instruction, earlier)
                    break
            else:
                candidates.append(instruction)

    def _replace(self, instruction: Instruction, earlier: Instruction) -> None:
        if not self.context.apply(instruction, f"equals %{earlier.name}"):
            return
        self.context.count("instructions merged")
        if self.options.ignore_control_dependencies:
            instruction.drop_control_dependencies()
        operands = list(dict.fromkeys(instruction.operands))
        replace_instruction(instruction, earlier)
        self.dead.remove_dead(operands)

    def _is_eligible(self, instruction: Instruction) -> bool:
        if instruction.opcode in (Opcode.PARAMETER, Opcode.CONSTANT) or (
            instruction.has_control_dependencies and not self.options.ignore_control_dependencies
        ):
            return False
        wanted = self.options.should_eliminate_instruction
        if wanted is not None:
            return wanted(instruction)
        return may_be_merged(instruction, self.effects)

    def _redirect_duplicate_outputs(self, element: Instruction) -> None:
        """Let an element of a fusion that equals an earlier output read that one."""
        if element.opcode is not Opcode.GET_TUPLE_ELEMENT:
            return
        fusion = element.operands[0]
        if fusion.opcode is not Opcode.FUSION:
            return
        root = fusion.called[0].root
        if root.opcode is Opcode.TUPLE:
            first = root.operands.index(root.operands[element.tuple_index])
            what = f"reads output {first}, which is the same"
            if first != element.tuple_index and self.context.apply(element, what, remark=False):
                element.set_attribute("index", str(first))
                self.context.count("fusion outputs merged")


class _Iotas:
    """Equal iotas: they count as one operand, and are merged where one instruction uses both."""

    def __init__(self, equality: Equality, context: PassContext) -> None:
        self.equality = equality
        self.context = context
        self.stand_in: dict[Instruction, Instruction] = {}
        self._first: dict[Key, Instruction] = {}

    def merge_operands(self, instruction: Instruction) -> None:
        """Note an iota; let an instruction that uses equal ones use the first it has."""
        if instruction.opcode is Opcode.IOTA:
            key = self.equality.operation(instruction)
            self.stand_in[instruction] = self._first.setdefault(key, instruction)
            return
        used: dict[Instruction, Instruction] = {}
        merged = {
            number: first
            for number, operand in enumerate(instruction.operands)
            if operand in self.stand_in
            if (first := used.setdefault(self.stand_in[operand], operand)) is not operand
        }
        what = "uses one of several equal iotas"
        if merged and self.context.apply(instruction, what, remark=False):
            for number, first in merged.items():
                instruction.replace_operand(number, first)


def _has_domains(computation: Computation) -> bool:
    return any(i.opcode is Opcode.DOMAIN for i in computation.instructions)
