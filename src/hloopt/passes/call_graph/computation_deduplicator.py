"""Let callers of equal computations share one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hloopt.analysis.calls import callees_first
from hloopt.analysis.equality import DEBUGGING, Equality, Key, outline
from hloopt.ir.attributes.values import format_metadata, parse_metadata
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import COLLECTIVES, Opcode
from hloopt.ir.shapes.shape_size import shape_bytes
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.simplification.dce import without_live_callers

MOST_INSTRUCTIONS = 128
MOST_CONSTANT_BYTES = 1024


@register(
    "computation-deduplicator",
    preserves="bits",
    xla=XlaPass(
        "HloComputationDeduplicator",
        "xla/hlo/transforms/simplifiers/hlo_computation_deduplicator.h",
    ),
)
class ComputationDeduplicator(ModulePass):
    """Replace each computation that equals an earlier one by that one, and remove it.

    Equal means: names, metadata and origins aside, the same instructions with the same operands
    in the same order, on the same thread, calling the same computations. Callees come before
    callers, so nested ones are merged in one run. Computations of more than 128 instructions, with
    more than 1024 bytes of constants, or called by a collective stay; so do those of fusions and
    asynchronous starts, which own what they call. Linear in the size of the module.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        mark_fusion_duplications: bool = option(
            False, "merge nothing; give equal fusions the name of the first as deduplicated_name"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        before = module.version
        duplicates = _Duplicates()
        for computation in callees_first(module):
            if computation.is_entry:
                continue
            if reason := self.why_not(computation):
                for caller in computation.callers:
                    context.missed(caller, reason)
                continue
            duplicates.find_first_of(computation)
        if self.options.mark_fusion_duplications:
            _mark(duplicates.first, context)
        elif duplicates.first:
            _merge(duplicates.first, context)
            merged = without_live_callers(duplicates.first)
            context.count("computations merged", len(merged))
            module.remove_computations(merged)
        return module.version != before

    def why_not(self, computation: Computation) -> str | None:
        """The reason why the computation is neither replaced nor a replacement; None where it may
        be."""
        name = f"%{computation.name}"
        if len(computation) > MOST_INSTRUCTIONS:
            return (
                f"{name} has {len(computation)} instructions, more than {MOST_INSTRUCTIONS} are "
                "not compared"
            )
        callers = {caller.opcode for caller in computation.callers}
        if not callers.isdisjoint(COLLECTIVES):
            return f"a collective calls {name}"
        if Opcode.FUSION in callers and not self.options.mark_fusion_duplications:
            return f"{name} belongs to one fusion"
        if Opcode.ASYNC_START in callers:
            return f"{name} belongs to one asynchronous operation"
        constants = (i for i in computation.instructions if i.opcode is Opcode.CONSTANT)
        size = sum(shape_bytes(constant.shape) for constant in constants)
        if size > MOST_CONSTANT_BYTES:
            return (
                f"{name} has constants of {size} bytes, more than {MOST_CONSTANT_BYTES} are not "
                "compared"
            )
        return None


class _Duplicates:
    """Finds the first of equal computations. Ask for callees before their callers."""

    def __init__(self) -> None:
        self.first: dict[Computation, Computation] = {}
        """The first of the computations that equal the key, which comes later."""
        self._equality = Equality(is_layout_sensitive=True, ignored=DEBUGGING)
        self._only: dict[Key, Computation | None] = {}
        """The one computation with an outline; None for several, whose bodies are compared."""
        self._bodies: dict[Key, Computation] = {}

    def find_first_of(self, computation: Computation) -> None:
        """Look for an earlier computation that equals this one. O(instructions)."""
        key = outline(computation)
        if key not in self._only:
            self._only[key] = computation
            return
        only = self._only[key]
        if only is not None:
            self._bodies[self._body(only)] = only
            self._only[key] = None
        first = self._bodies.setdefault(self._body(computation), computation)
        if first is not computation:
            self.first[computation] = first

    def _body(self, computation: Computation) -> Key:
        return self._equality.body(computation, lambda callee: self.first.get(callee, callee))


def _merge(duplicates: dict[Computation, Computation], context: PassContext) -> None:
    """Let what calls duplicates call the first of them. O(calls)."""
    callers = dict.fromkeys(caller for computation in duplicates for caller in computation.callers)
    for caller in callers:
        if not context.apply(caller, "calls the first of equal computations", remark=False):
            return
        for called in dict.fromkeys(caller.called):
            if called in duplicates:
                first = duplicates[called]
                context.applied(caller, f"calls %{first.name}, which equals %{called.name}")
        caller.set_called(tuple(duplicates.get(called, called) for called in caller.called))


def _mark(duplicates: dict[Computation, Computation], context: PassContext) -> None:
    """Name the first of equal fusions in all of them, itself included."""
    for computation, first in duplicates.items():
        original = next((c for c in first.callers if c.opcode is Opcode.FUSION), None)
        if original is None:
            continue
        for fusion in (original, *computation.callers):
            if fusion.opcode is Opcode.FUSION:
                _set_deduplicated_name(fusion, original.name, context)


def _set_deduplicated_name(fusion: Instruction, name: str, context: PassContext) -> None:
    metadata = parse_metadata(fusion.attributes.get("metadata", "{}"))
    if metadata.deduplicated_name != name:
        marked = format_metadata(replace(metadata, deduplicated_name=name))
        if marked is None:
            context.missed(fusion, "it has no metadata; XLA writes none for this name alone")
            return
        if not context.apply(fusion, f"marked as equal to %{name}"):
            return
        context.count("fusions marked")
        fusion.set_attribute("metadata", marked)
