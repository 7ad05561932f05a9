"""Copy insertion as a whole."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.analysis.call_graph import CallGraph
from hloopt.analysis.side_effects import SideEffects
from hloopt.collector import collector_paused
from hloopt.diagnostics import PassRefused
from hloopt.ir import Computation, Instruction, Module
from hloopt.ir.opcode import CONTROL_FLOW_CALLERS
from hloopt.ir.ordering import repair_schedule
from hloopt.memory.backends import Backend, backend_of
from hloopt.pass_framework.base import PassContext
from hloopt.passes.copy_insertion.adding import add_copies
from hloopt.passes.copy_insertion.execution_order import schedule_positions
from hloopt.passes.copy_insertion.facts import Facts
from hloopt.passes.copy_insertion.removal import CopyRemover
from hloopt.passes.copy_insertion.special_cases import add_special_case_copies
from hloopt.passes.simplification.dce import DeadCode, DeadCodeElimination
from hloopt.passes.simplification.tuple_simplifier import TupleSimplifier, simplify_tuples


def insert_copies(
    module: Module,
    *,
    backend: Backend | None = None,
    use_regions: bool = False,
    threads: tuple[str, ...] = (),
    keep: Callable[[Instruction], bool] | None = None,
    context: PassContext | None = None,
) -> None:
    """Add the copies without which one buffer would have to hold two values at a time.

    `backend` says which operands results may be written over; without it the module tells what it
    was compiled for. `keep` tells copies that must stay. A schedule is kept: new copies come right
    before what first needs them. Raises PassRefused where the call graph is not flat, and
    HloVerifyError where shapes, aliases or calls do not fit together.
    """
    require_flat_calls(module)
    backend = backend or backend_of(module)
    context = context or PassContext(wants_remarks=False)
    with collector_paused():
        add_copies(module, Facts(module, backend), threads)
        _clean_up(module, threads)
        cleaned = {c: c.version for c in module.computations.values()}
        facts = Facts(module, backend)
        remover = CopyRemover(
            module, facts, schedule_positions(module), use_regions=use_regions, keep=keep
        )
        remover.run(threads, context)
        remover.drop_copies()
        add_special_case_copies(module, facts, threads, context)
        _tidy(module, [c for c in module.computations.values() if c.version != cleaned[c]])


def require_flat_calls(module: Module) -> None:
    """Raise PassRefused where several instructions run one computation as control flow."""
    if all(_has_one_call(computation) for computation in module.computations.values()):
        return  # as in most modules that are flat
    for node in CallGraph.build(module).nodes.values():
        if reason := node.why_not_flat():
            raise PassRefused(
                "Call graph must be flattened before copy insertion.",
                help=f"run flatten-call-graph first: %{node.computation.name}: {reason}",
            )


def _has_one_call(computation: Computation) -> bool:
    """Whether control flow runs a computation from one place at most. O(callers)."""
    callers = computation.callers
    return sum(callers.values()) < 2 or not any(c.opcode in CONTROL_FLOW_CALLERS for c in callers)


def _clean_up(module: Module, threads: tuple[str, ...]) -> None:
    """Remove tuples that deep copies left behind, and dead code."""
    quiet = PassContext(wants_remarks=False)
    TupleSimplifier(TupleSimplifier.Options(execution_threads=threads)).run(module, quiet)
    DeadCodeElimination(DeadCodeElimination.Options(execution_threads=threads)).run(module, quiet)
    repair_schedule(module.computations.values())


def _tidy(module: Module, changed: list[Computation]) -> None:
    """As `_clean_up`, for `changed` computations in which only copies were added or removed."""
    quiet = PassContext(wants_remarks=False)
    remover = DeadCode(SideEffects(module), DeadCodeElimination.Options(), quiet)
    for computation in changed:
        remover.remove_dead(simplify_tuples(computation, quiet))
        remover.clean(computation)
    repair_schedule(changed)
