"""The passes that insert copies and remove them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from hloopt.analysis.call_graph import CallGraph
from hloopt.diagnostics import PassRefused
from hloopt.ir import Computation, Instruction, Module
from hloopt.ir.ordering import repair_schedule
from hloopt.memory.backends import BACKENDS, CPU, Backend
from hloopt.passes.base import ModulePass, PassContext, PassOptions, option, register
from hloopt.passes.copy_insertion.adding import add_copies
from hloopt.passes.copy_insertion.facts import Facts
from hloopt.passes.copy_insertion.removal import CopyRemover
from hloopt.passes.copy_insertion.special_cases import add_special_case_copies
from hloopt.passes.dce import DeadCodeElimination
from hloopt.passes.tuple_simplifier import TupleSimplifier

AliasInfo = Literal["default", "gpu"]
Predicate = Callable[[Instruction], bool]
_REGION = "when the order of live ranges is not known, look where buffers are read and written: 0 never, -1 always, n only up to a product of n accesses"
_THREADS = "only computations on these; none: all"
_ALIAS = "which operands results may be written over: rules all targets share, or XLA:GPU's"


@register("copy-insertion")
class CopyInsertion(ModulePass):
    """Add the copies without which one buffer would have to hold two values at a time."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        use_region_based_live_range_analysis: int = option(0, _REGION)
        execution_threads: tuple[str, ...] = option((), _THREADS)
        alias_info: AliasInfo = option("default", _ALIAS)
        should_skip_removal: Predicate | None = option(
            None, "copies that stay whatever they are; from Python only"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        options = self.options
        threads = options.execution_threads
        _require_flat(module)
        positions = _positions(module)
        backend = _backend(options.alias_info)
        facts = Facts.of(module, backend)
        add_copies(module, facts, threads)
        _clean_up(module, threads)
        facts = Facts.of(module, backend)
        CopyRemover(
            module,
            facts,
            positions,
            use_regions=options.use_region_based_live_range_analysis != 0,
            keep=options.should_skip_removal,
        ).run(threads, context)
        facts = Facts.of(module, backend)
        add_special_case_copies(module, facts, threads, context)
        _clean_up(module, threads)
        repair_schedule(module.computations.values())
        return True


@register("remove-unnecessary-copies")
class RemoveUnnecessaryCopies(ModulePass):
    """Remove copies."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        use_region_based_live_range_analysis: int = option(0, _REGION)
        execution_threads: tuple[str, ...] = option((), _THREADS)
        alias_info: AliasInfo = option("default", _ALIAS)
        insert_post_scheduling_control_dependencies: bool = option(False, "edges")
        should_skip_removal: Predicate | None = option(
            None, "copies that stay whatever they are; from Python only"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        options = self.options
        _require_flat(module)
        facts = Facts.of(module, _backend(options.alias_info))
        return CopyRemover(
            module,
            facts,
            _positions(module),
            use_regions=options.use_region_based_live_range_analysis != 0,
            keep=options.should_skip_removal,
            add_edges=options.insert_post_scheduling_control_dependencies,
        ).run(options.execution_threads, context)


@register("add-special-case-copies")
class AddSpecialCaseCopies(ModulePass):
    """Add copies."""

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        execution_threads: tuple[str, ...] = option((), _THREADS)
        alias_info: AliasInfo = option("default", _ALIAS)

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        _require_flat(module)
        facts = Facts.of(module, _backend(self.options.alias_info))
        return add_special_case_copies(module, facts, self.options.execution_threads, context)


def _backend(alias_info: AliasInfo) -> Backend:
    return BACKENDS.get(alias_info, CPU)


def _require_flat(module: Module) -> None:
    for node in CallGraph.build(module).nodes.values():
        if reason := node.why_not_flat():
            raise PassRefused(
                "Call graph must be flattened before copy insertion.",
                help=f"run flatten-call-graph first: of %{node.computation.name}, {reason}",
            )


def _positions(module: Module) -> Mapping[Computation, Mapping[Instruction, int]] | None:
    if not module.is_scheduled:
        return None
    return {
        c: {instruction: n for n, instruction in enumerate(c.instructions)}
        for c in module.computations.values()
    }


def _clean_up(module: Module, threads: tuple[str, ...]) -> None:
    quiet = PassContext(wants_remarks=False)
    TupleSimplifier(TupleSimplifier.Options(execution_threads=threads)).run(module, quiet)
    DeadCodeElimination(DeadCodeElimination.Options(execution_threads=threads)).run(module, quiet)
