"""Replace calls by copies of what they call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

from hloopt.analysis.calls import callees_first, calls_by_computation
from hloopt.analysis.side_effects import SideEffects
from hloopt.diagnostics import HloVerifyError
from hloopt.ir.attributes.typed import is_composite
from hloopt.ir.attributes.values import format_frontend_attributes, parse_frontend_attributes
from hloopt.ir.clone import clone_module, own_computations
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.ir.ordering import stable_order
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    is_on_thread,
    option,
    register,
)
from hloopt.passes.call_graph.call_metadata import CallMetadata
from hloopt.passes.call_graph.original_value import value_in_caller
from hloopt.passes.call_graph.sharding_domains import isolate
from hloopt.passes.rewriting.replace import control_dependencies_can_move, inherit
from hloopt.passes.simplification.dce import DeadCodeElimination

InlinePolicy = Literal["allow_inline", "prohibit_inline", "allow_ignore_frontend_attributes"]


@register(
    "call-inliner",
    preserves="bits",
    xla=XlaPass("CallInliner", "xla/service/call_inliner.h"),
)
class CallInliner(ModulePass):
    """Replace each eligible `call` by a copy of the computation it calls.

    Callees are visited before callers, so nested calls disappear in one run; afterwards dead
    code is removed. Copies keep the channel ids of the originals, and share the computations
    they call with them (flatten the call graph first where that matters). Scheduled modules stay
    scheduled: copies take the place of the call. Linear in the size of the result.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        single_call_site: bool = option(False, "inline only what is called from one place")
        update_domain: bool = option(False, "put domains between different shardings")
        composites_to_preserve: tuple[str, ...] = option((), "names of composites that stay")
        propagate_metadata: bool = option(True, "put the call's op_name and stack frame first")
        use_shardy: bool = option(False, "leave bodies of Shardy's manual computations alone")
        execution_threads: tuple[str, ...] = option((), "only calls on these; none: all")
        override_policy: Callable[[Instruction], InlinePolicy] | None = option(
            None, "allow_inline, prohibit_inline or allow_ignore_frontend_attributes for a call"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        changed = False
        for _ in self.inline_calls(module, context):
            changed = True
        if changed:
            self.clean_up(module)
        return changed

    def clean_up(self, module: Module) -> None:
        """Remove what inlining left without users."""
        options = DeadCodeElimination.Options(execution_threads=self.options.execution_threads)
        DeadCodeElimination(options).run(module, PassContext(wants_remarks=False))

    def inline_calls(
        self, module: Module, context: PassContext
    ) -> Iterator[dict[Instruction, Instruction]]:
        """Inline call by call, without any clean-up; what became of each callee's instructions."""
        sites = {c: sum(c.callers.values()) for c in module.computations.values()}
        calls = calls_by_computation(module)
        inliner = Inliner(module, self.options, cleans_up=True)
        for computation in callees_first(module, calls):
            if not is_on_thread(computation, self.options.execution_threads):
                continue
            chosen: list[Instruction] = []
            for call in calls.get(computation, ()):
                if call.opcode is not Opcode.CALL:
                    continue
                if reason := self.why_not(call, sites[call.called[0]]):
                    context.missed(call, reason)
                    continue
                if not context.apply(call, f"inlined %{call.called[0].name}"):
                    break
                context.count("calls inlined")
                chosen.append(call)
            yield from inliner.inline(computation, chosen).values()
        inliner.metadata.finish()

    def why_not(self, call: Instruction, call_sites: int) -> str | None:
        """The reason why `call` must stay, or None where it may be inlined.

        `call_sites` is how often its callee was called before anything was inlined.
        """
        options = self.options
        callee = call.called[0]
        hints = _frontend(call)
        composite = hints.get("composite.name", "")
        if call.attributes.get("backend_config", '""') != '""':
            return "it has a backend_config"
        if call.parent.is_asynchronous:
            return "it runs asynchronously"
        if options.use_shardy and _is_manual_computation(callee):
            return f"%{callee.name} is a manual computation of Shardy"
        if is_composite(call) and (composite in options.composites_to_preserve):
            return f"it is the composite '{composite}', which composites_to_preserve names"
        policy = options.override_policy(call) if options.override_policy else "allow_inline"
        if policy == "prohibit_inline":
            return "the override policy prohibits it"
        inlineable = hints.get("inlineable")
        if inlineable in ("false", "xla_late") and policy != "allow_ignore_frontend_attributes":
            return f"it is marked inlineable={inlineable}"
        if inlineable in ("true", "xla_early"):
            return None
        if options.single_call_site and call_sites != 1:
            return f"%{callee.name} has {call_sites} call sites, single_call_site is set"
        return None


def inline_call(call: Instruction) -> dict[Instruction, Instruction]:
    """Inline one call, whatever its attributes say, without any clean-up.

    Returns what became of each instruction of the callee. Raises HloVerifyError if `call` is
    another instruction. O(size of the callee + users).
    """
    if call.opcode is not Opcode.CALL:
        raise HloVerifyError(f"%{call.name} is not a call but {call.opcode}")
    inliner = Inliner(call.parent.module, CallInliner.Options(), cleans_up=False)
    copies = inliner.inline(call.parent, [call])[call]
    inliner.metadata.finish()
    return copies


class InlinedClone(NamedTuple):
    """A module without its calls, and where it comes from."""

    module: Module
    clones: dict[Instruction, Instruction]
    """The instruction of the clone, as it was before inlining, for each of the original."""
    copies: dict[Instruction, list[Instruction]]
    """The fate of each instruction of an inlined callee, once for each call; a parameter is the
    operand of the call. What nothing uses has left the module."""


def inline_clone(module: Module, options: CallInliner.Options | None = None) -> InlinedClone:
    """Inline the calls of a clone, as `call-inliner` does; `module` stays as it is.

    Linear in the size of the result.
    """
    clone, computations = clone_module(module)
    clones = {
        original: copy
        for computation, copied in computations.items()
        for original, copy in zip(stable_order(computation), copied.instructions, strict=True)
    }
    copies: dict[Instruction, list[Instruction]] = {}
    inliner = CallInliner(options)
    for inlined in inliner.inline_calls(clone, PassContext(wants_remarks=False)):
        for callee_instruction, copy in inlined.items():
            copies.setdefault(callee_instruction, []).append(copy)
    if copies:
        inliner.clean_up(clone)
    return InlinedClone(clone, clones, copies)


def _is_manual_computation(computation: Computation) -> bool:
    return any(
        mark in computation.name for mark in ("shmap_body", "xla.sdy.manual_computation_body")
    )


def _frontend(instruction: Instruction) -> dict[str, str]:
    text = instruction.attributes.get("frontend_attributes")
    return {} if text is None else parse_frontend_attributes(text)


def _set_frontend(instruction: Instruction, values: dict[str, str]) -> None:
    text = format_frontend_attributes(values) if values else None
    instruction.set_attribute("frontend_attributes", text)


class Inliner:
    """Inlines chosen calls of one module. `cleans_up`: callees nobody calls any more will go."""

    def __init__(self, module: Module, options: CallInliner.Options, *, cleans_up: bool) -> None:
        self.options = options
        self.cleans_up = cleans_up
        self.metadata = CallMetadata(module)
        self._effects: SideEffects | None = None

    def inline(
        self, computation: Computation, calls: list[Instruction]
    ) -> dict[Instruction, dict[Instruction, Instruction]]:
        """Inline calls of one computation; what became of the callees' instructions, by call."""
        if not calls:
            return {}
        result: dict[Instruction, dict[Instruction, Instruction]] = {}
        placed: dict[Instruction, list[Instruction]] = {}
        for call in calls:
            copies = result[call] = self._inline(call)
            parameters = {i for i in copies if i.opcode is Opcode.PARAMETER}
            placed[call] = [copies[i] for i in copies if i not in parameters]
        if computation.module.is_scheduled:
            computation.splice(placed)
        for call in calls:
            computation.remove(call)
        if computation.module.is_scheduled and self.options.update_domain:
            computation.reorder(stable_order(computation))
        return result

    def _inline(self, call: Instruction) -> dict[Instruction, Instruction]:
        callee = call.called[0]
        _drop_composite_attributes(call)
        self._add_fusion_hints(call, callee)
        prefix, frame = self.metadata.of(call) if self.options.propagate_metadata else ("", 0)
        original = call.attributes.get("origin")
        predecessors = call.control_predecessors
        callee_stays = (
            len(callee.callers) > 1
            or not self.cleans_up
            or not is_on_thread(callee, self.options.execution_threads)
        )
        copies: dict[Instruction, Instruction] = {}
        for instruction in stable_order(callee):
            if instruction.opcode is Opcode.PARAMETER:
                copies[instruction] = call.operands[instruction.parameter_number]
                continue
            operands = [copies[operand] for operand in instruction.operands]
            copy = copies[instruction] = call.parent.add_clone(instruction, operands)
            if callee_stays:  # else nobody but the copy will call what the original calls
                own_computations(copy)
            self.metadata.add_to(copy, prefix, frame)
            if "origin" in instruction.attributes:
                copy.set_attribute(
                    "origin", value_in_caller(instruction.attributes["origin"], original)
                )
            for predecessor in instruction.control_predecessors:
                copy.add_control_predecessor(copies[predecessor])
            for predecessor in predecessors:
                copy.add_control_predecessor(predecessor)
        self._replace(call, copies[callee.root])
        if self.options.update_domain:
            for instruction, copy in copies.items():
                if instruction.opcode is not Opcode.PARAMETER:
                    isolate(copy)
        return copies

    def _replace(self, call: Instruction, result: Instruction) -> None:
        """Let `result` stand for the call, which stays behind without users and control edges."""
        inherit(call, result)
        is_copy = call.called[0].root.opcode is not Opcode.PARAMETER
        if is_copy or control_dependencies_can_move(call, result):
            call.move_control_dependencies_to(result)
        else:  # predecessors of the call wait for the operand that it hands back
            for successor in call.control_successors:
                for predecessor in call.control_predecessors:
                    successor.add_control_predecessor(predecessor)
            call.drop_control_dependencies()
        call.replace_all_uses_with(result)
        if result.opcode is Opcode.CALL:
            result.take_name(call.parent.module.instruction_names.unique(call.name))

    def _add_fusion_hints(self, call: Instruction, callee: Computation) -> None:
        hints = _frontend(call)
        fuse = next((name for name in ("MUST_FUSE", "MAXIMAL_FUSE") if name in hints), None)
        names = [name for name in (fuse, "mosaic_fusion_group") if name in hints]
        if not names:
            return
        if self._effects is None:
            self._effects = SideEffects(callee.module)
        for instruction in callee.instructions:
            if self._is_fusible(instruction, self._effects):
                own = _frontend(instruction)
                _set_frontend(instruction, {**{n: hints[n] for n in names if n}, **own})

    @staticmethod
    def _is_fusible(instruction: Instruction, effects: SideEffects) -> bool:
        opcode = instruction.opcode
        if opcode is Opcode.RNG:
            return len(instruction.users) <= 1
        return opcode not in _NOT_FUSIBLE and not effects.of(instruction)


_NOT_FUSIBLE = frozenset(
    (Opcode.DOMAIN, Opcode.PARAMETER, Opcode.WHILE, Opcode.CONDITIONAL, Opcode.CALL)
)


def _drop_composite_attributes(call: Instruction) -> None:
    if not is_composite(call):
        return
    hints = _frontend(call)
    _set_frontend(call, {k: v for k, v in hints.items() if k not in _COMPOSITE})


_COMPOSITE = frozenset(("composite.name", "composite.attributes", "composite.version"))
