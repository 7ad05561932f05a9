"""The passes that insert copies and remove those that are not needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hloopt.ir import Instruction, Module
from hloopt.ir.ordering import repair_schedule
from hloopt.memory.backends import BACKENDS, CPU, Backend
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    option,
    register,
)
from hloopt.passes.copy_insertion.execution_order import schedule_positions
from hloopt.passes.copy_insertion.facts import Facts
from hloopt.passes.copy_insertion.insertion import insert_copies, require_flat_calls
from hloopt.passes.copy_insertion.removal import CopyRemover
from hloopt.passes.copy_insertion.special_cases import add_special_case_copies

_AliasInfo = Literal["default", "gpu"]
_Predicate = Callable[[Instruction], bool]
_REGIONS = "where live ranges are not ordered, test where buffers are read and written: 0 is never"
_THREADS = "only computations on these; none: all"
_ALIAS_INFO = "which operands results may be written over: what all targets share, or XLA:GPU's"
_SKIP = "copies never to remove; from Python only"


@register(
    "copy-insertion",
    preserves="bits",
    xla=XlaPass("CopyInsertion", "xla/service/copy_insertion.h"),
)
class CopyInsertion(ModulePass):
    """Add the copies without which one buffer would have to hold two values at a time.

    The state of a loop, the results of branches, operations in place and outputs aliased with
    parameters each lie in one place. Copies are added wherever values could collide there, and
    removed again where an order of all values is found in which none does; constants, arguments
    and results returned twice get theirs last. The call graph must be flat: flatten-call-graph
    comes before. A schedule is kept, with new copies right before what first needs them. Always
    counts as a change. Near-linear, unless many copies cannot be removed.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        use_region_based_live_range_analysis: int = option(0, _REGIONS)
        execution_threads: tuple[str, ...] = option((), _THREADS)
        alias_info: _AliasInfo = option("default", _ALIAS_INFO)
        should_skip_removal: _Predicate | None = option(None, _SKIP)

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        options = self.options
        # One application: copies are added everywhere, then those that are not needed removed.
        if not context.apply(module.entry.root, "copies inserted in the module", remark=False):
            return False
        insert_copies(
            module,
            backend=_backend(options.alias_info),
            use_regions=options.use_region_based_live_range_analysis != 0,
            threads=options.execution_threads,
            keep=options.should_skip_removal,
            context=context.as_part(),
        )
        return True


@register(
    "remove-unnecessary-copies",
    preserves="bits",
    xla=XlaPass(
        "CopyInsertion::RemoveUnnecessaryCopies", "xla/service/copy_insertion.h", compared="tests"
    ),
)
class RemoveUnnecessaryCopies(ModulePass):
    """Replace copies by what they copy where both may lie in one place.

    That is so where an order of all values there is found in which each is needed no more when
    the next one comes. A copy that changes layout or memory space stays. What is replaced is left
    for dce. The call graph must be flat.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        use_region_based_live_range_analysis: int = option(0, _REGIONS)
        execution_threads: tuple[str, ...] = option((), _THREADS)
        alias_info: _AliasInfo = option("default", _ALIAS_INFO)
        should_skip_removal: _Predicate | None = option(None, _SKIP)
        insert_post_scheduling_control_dependencies: bool = option(
            False, "fix the order that the removal of a copy relies on by control dependencies"
        )

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        options = self.options
        require_flat_calls(module)
        remover = CopyRemover(
            module,
            Facts(module, _backend(options.alias_info)),
            schedule_positions(module),
            use_regions=options.use_region_based_live_range_analysis != 0,
            keep=options.should_skip_removal,
            add_edges=options.insert_post_scheduling_control_dependencies,
        )
        changed = remover.run(options.execution_threads, context)
        remover.drop_asynchronous_copies()
        return changed


@register(
    "add-special-case-copies",
    preserves="bits",
    xla=XlaPass(
        "CopyInsertion::AddSpecialCaseCopies", "xla/service/copy_insertion.h", compared="tests"
    ),
)
class AddSpecialCaseCopies(ModulePass):
    """Copy what lies in read-only memory, is overwritten while it is read, or returned twice.

    Constants and arguments that share memory with other values, operands where a result must not
    be written, and results of the entry and of branches that are in one place. What copy-insertion
    does last, on its own. The call graph must be flat. Linear.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        execution_threads: tuple[str, ...] = option((), _THREADS)
        alias_info: _AliasInfo = option("default", _ALIAS_INFO)

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        require_flat_calls(module)
        facts = Facts(module, _backend(self.options.alias_info))
        changed = add_special_case_copies(module, facts, self.options.execution_threads, context)
        if changed:
            repair_schedule(module.computations.values())
        return changed


def _backend(alias_info: _AliasInfo) -> Backend:
    return BACKENDS.get(alias_info, CPU)
