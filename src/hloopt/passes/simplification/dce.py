"""Remove what no result depends on: instructions, fusion outputs and parameters, computations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hloopt.analysis.calls import reachable_from_entry
from hloopt.analysis.side_effects import SideEffects, has_own_side_effect
from hloopt.ir.attributes import values as attribute_values
from hloopt.ir.attributes.typed import constrains_layout, fusion_kind_of
from hloopt.ir.computation import Computation
from hloopt.ir.custom_targets import custom_call_target
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.ir.ordering import stable_computation_order
from hloopt.ir.shapes.shape import tuple_shape
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    is_on_thread,
    option,
    register,
)
from hloopt.passes.rewriting.dead_parameters import (
    remove_dead_entry_parameters,
    remove_dead_parameters,
)


@register(
    "dce",
    preserves="bits",
    xla=XlaPass("HloDCE", "xla/hlo/transforms/simplifiers/hlo_dce.h"),
)
class DeadCodeElimination(ModulePass):
    """Remove dead instructions, unused fusion outputs and parameters, and unused computations.

    An instruction stays if something uses it, if it is a root or a parameter, has control
    dependencies, or has a side effect (called computations are looked into). Callers are visited
    before callees, and again after a callee has lost parameters, so that one run suffices. Linear
    in the module's size, and in computations that lose parameters at each level of calls.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        remove_cross_partition_collective_ops: bool = option(
            False, "remove dead collectives with a channel id, unless they constrain layouts"
        )
        use_call_analysis: bool = option(
            False, "also remove dead parameters of computations that are only called, fused or "
            "started asynchronously"
        )  # fmt: skip
        remove_dead_parameters_from_entry_computation: bool = option(
            False, "also remove parameters of the entry that nothing uses"
        )
        execution_threads: tuple[str, ...] = option((), "only computations on these; none: all")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        cleaner = DeadCode(SideEffects(module), self.options, context)
        reachable = reachable_from_entry(module)
        threads = self.options.execution_threads
        cleaner.clean_all(
            computation
            for computation in reversed(stable_computation_order(module))
            if computation in reachable and is_on_thread(computation, threads)
        )
        if self.options.remove_dead_parameters_from_entry_computation:
            remove_dead_entry_parameters(module, context)
        if module.version != before:
            reachable = reachable_from_entry(module)
        dead = without_live_callers(
            computation
            for computation in module.computations.values()
            if computation not in reachable and is_on_thread(computation, threads)
        )
        what = "removed with all that the entry does not run"
        if dead and not context.apply(dead[0].root, what, remark=False):
            dead = []
        context.count("computations removed", len(dead))
        module.remove_computations(dead)
        return module.version != before


def unreachable_computations(module: Module) -> set[Computation]:
    """The computations that the entry does not run, directly or not. O(calls)."""
    reachable = reachable_from_entry(module)
    return {c for c in module.computations.values() if c not in reachable}


def remove_unreachable(module: Module, known: set[Computation]) -> None:
    """Remove computations that the entry runs no more; `known` are those that it never did.

    O(calls + instructions removed).
    """
    unreachable = unreachable_computations(module) - known
    module.remove_computations(
        without_live_callers(c for c in module.computations.values() if c in unreachable)
    )


def without_live_callers(computations: Iterable[Computation]) -> list[Computation]:
    """Those that nobody outside of `computations` calls, directly or not. O(instructions)."""
    dead = dict.fromkeys(computations)
    live = [c for c in dead if any(caller.parent not in dead for caller in c.callers)]
    while live:
        computation = live.pop()
        if computation in dead:
            del dead[computation]
            live += [callee for i in computation.instructions for callee in i.called]
    return list(dead)


_CONTINUES = frozenset(
    (
        *(Opcode.ASYNC_UPDATE, Opcode.ASYNC_DONE, Opcode.COPY_DONE, Opcode.ALL_REDUCE_DONE),
        *(Opcode.ALL_GATHER_DONE, Opcode.COLLECTIVE_PERMUTE_DONE),
    )
)
"""Opcodes that continue or finish what their first operand has started."""


def started_by(instruction: Instruction) -> Iterator[Instruction]:
    """The instruction and, where it continues or finishes others, these back to the start."""
    yield instruction
    while instruction.opcode in _CONTINUES and instruction.operands:
        instruction = instruction.operands[0]
        yield instruction


class DeadCode:
    """Cleans computations of one module."""

    def __init__(
        self, effects: SideEffects, options: DeadCodeElimination.Options, context: PassContext
    ) -> None:
        self.options = options
        self.context = context
        self.effects = effects
        self._left: dict[Computation, None] = {}
        """Computations to clean again: removing parameters or outputs elsewhere changed them."""

    def clean_all(self, computations: Iterable[Computation]) -> None:
        """Clean computations, given callers first, until nothing in them is dead."""
        rank = {computation: number for number, computation in enumerate(computations)}
        for computation in rank:
            self._left.pop(computation, None)
            self.clean(computation)
        while again := [computation for computation in self._left if computation in rank]:
            # Callees first: a parameter that they lose may be the last use of one of their caller.
            for computation in sorted(again, key=rank.__getitem__, reverse=True):
                self._left.pop(computation, None)
                self.clean(computation)

    def clean(self, computation: Computation) -> None:
        """Remove what is dead in the computation, and dead parameters of it."""
        computation.link_users()
        self.remove_dead([i for i in computation.instructions if not i.users])
        for fusion in [i for i in computation.instructions if i.opcode is Opcode.FUSION]:
            self._drop_unused_outputs(fusion)
        if computation.is_fusion or self._has_only_plain_callers(computation):
            for operand in remove_dead_parameters(computation, self.context):
                self._left[operand.parent] = None
                self.remove_dead([operand])

    def remove_dead(
        self, candidates: Iterable[Instruction], context: PassContext | None = None
    ) -> None:
        """Remove the candidates that are dead, and operands that become dead with them.

        Each is an application of `context`, by default that of all cleaning.
        """
        context = context or self.context
        stack = [i for i in candidates if self.is_dead(i)]
        while stack:
            instruction = stack.pop()
            if instruction not in instruction.parent or not self.is_dead(instruction):
                continue
            if not context.apply(instruction, "removed: nothing needs it", remark=False):
                break
            operands = list(dict.fromkeys(instruction.operands))
            instruction.parent.remove(instruction)
            context.count("instructions removed")
            stack += [operand for operand in operands if self.is_dead(operand)]

    def is_dead(self, instruction: Instruction) -> bool:
        """Whether nothing needs the instruction or its effect."""
        return (
            not instruction.users
            and instruction.opcode is not Opcode.PARAMETER
            and not instruction.is_root
            and self._may_go(instruction)
        )

    def _may_go(self, instruction: Instruction) -> bool:
        if any(part.has_control_dependencies or part.is_root for part in started_by(instruction)):
            return False  # a start that has to stay keeps its done
        opcode = instruction.opcode
        if opcode is Opcode.WHILE:
            return self._while_may_go(instruction)
        if opcode is Opcode.AFTER_ALL:
            return not any(self.effects.of(operand) for operand in instruction.operands)
        if opcode is Opcode.CUSTOM_CALL and _is_sharding_mark(instruction):
            return False
        return not self.effects.of(instruction) or self._effect_may_go(instruction)

    def _while_may_go(self, loop: Instruction) -> bool:
        if _frontend_attribute(loop, "xla_disable_while_loop_dce") == "true":
            return False
        if not self.effects.of(loop):
            return True
        return all(
            not has_own_side_effect(instruction) or self._effect_may_go(instruction)
            for computation in _all_called(loop)
            for instruction in computation.instructions
        )

    def _effect_may_go(self, instruction: Instruction) -> bool:
        """Whether the side effect of an instruction is one that may be dropped."""
        if instruction.opcode in COLLECTIVES:
            return (
                self.options.remove_cross_partition_collective_ops
                and not constrains_layout(instruction)
                and "channel_id" in instruction.attributes
            )
        return (
            custom_call_target(instruction) == "tpu_custom_call"
            and _frontend_attribute(instruction, "xla_allow_dce_side_effecting_op") == "true"
        )

    def _has_only_plain_callers(self, computation: Computation) -> bool:
        plain = (Opcode.CALL, Opcode.FUSION, Opcode.ASYNC_START)
        return (
            self.options.use_call_analysis
            and bool(computation.callers)
            and all(caller.opcode in plain for caller in computation.callers)
        )

    # -- fusion outputs ---------------------------------------------------------------------

    def _drop_unused_outputs(self, fusion: Instruction) -> None:
        """Drop the outputs of a multi-output fusion that nobody reads."""
        root = fusion.called[0].root
        if (
            root.opcode is not Opcode.TUPLE
            or fusion.is_root
            or not fusion.users
            or fusion_kind_of(fusion) == "kCustom"
            or "output_to_operand_aliasing" in fusion.attributes
            or "sharding" in root.attributes
            or fusion.has_control_dependencies
            or len(fusion.called[0].callers) != 1
            or any(user.opcode is not Opcode.GET_TUPLE_ELEMENT for user in fusion.users)
        ):
            return
        used = {user.tuple_index for user in fusion.users}
        kept = [i for i, output in enumerate(root.operands) if i in used or self.effects.of(output)]
        if len(kept) == len(root.operands):
            return
        if not self.context.apply(fusion, "loses the outputs that are not read", remark=False):
            return
        self.context.count("fusion outputs removed", len(root.operands) - len(kept))
        if len(kept) == 1:
            _return_array(fusion, root.operands[kept[0]])
        else:
            _return_smaller_tuple(fusion, kept)
        # Nothing in a fusion may be dead, parameters included.
        part = self.context.as_part()
        self.remove_dead([root], part)
        if remove_dead_parameters(fusion.called[0], part):
            self._left[fusion.parent] = None


def _return_array(fusion: Instruction, output: Instruction) -> None:
    fused = fusion.called[0]
    fused.set_root(output)
    fusion.set_shape(output.shape)
    for element in list(fusion.users):
        for successor in element.control_successors:
            successor.add_control_predecessor(fusion)
        element.drop_control_dependencies()
        element.replace_all_uses_with(fusion)
        element.parent.remove(element)


def _return_smaller_tuple(fusion: Instruction, kept: list[int]) -> None:
    from hloopt.passes.rewriting.tuples import (
        keep_elements,  # few modules need it, and all it reads with
    )

    fused = fusion.called[0]
    outputs = [fused.root.operands[i] for i in kept]
    shape = tuple_shape(fusion.shape.elements[i] for i in kept)
    fused.set_root(fused.add(Opcode.TUPLE, shape, outputs))
    keep_elements(fusion, kept)


def _is_sharding_mark(instruction: Instruction) -> bool:
    """Whether a custom call shards a value that is needed all the same."""
    if custom_call_target(instruction) != "Sharding":
        return False
    operand = instruction.operands[0]
    return operand.is_root or operand.opcode is Opcode.PARAMETER or len(operand.users) > 1


def _frontend_attribute(instruction: Instruction, name: str) -> str | None:
    text = instruction.attributes.get("frontend_attributes")
    return None if text is None else attribute_values.parse_frontend_attributes(text).get(name)


def _all_called(instruction: Instruction) -> Iterable[Computation]:
    found = dict.fromkeys(instruction.called)
    stack = list(found)
    while stack:
        for member in stack.pop().instructions:
            for called in member.called:
                if called not in found:
                    found[called] = None
                    stack.append(called)
    return found
