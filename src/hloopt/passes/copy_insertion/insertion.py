"""Copy insertion as a whole."""

from __future__ import annotations

from collections.abc import Callable

from hloopt.analysis.call_graph import CallGraph
from hloopt.diagnostics import PassRefused
from hloopt.ir import Instruction, Module
from hloopt.ir.ordering import repair_schedule
from hloopt.memory.backends import Backend, backend_of
from hloopt.passes.base import PassContext
from hloopt.passes.copy_insertion.adding import add_copies
from hloopt.passes.copy_insertion.execution_order import schedule_positions
from hloopt.passes.copy_insertion.facts import Facts
from hloopt.passes.copy_insertion.removal import CopyRemover
from hloopt.passes.copy_insertion.special_cases import add_special_case_copies
from hloopt.passes.dce import DeadCodeElimination
from hloopt.passes.tuple_simplifier import TupleSimplifier


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
    work = _Work(module, backend, threads)
    add_copies(module, work.facts(), threads)
    work.clean_up()
    CopyRemover(
        module, work.facts(), schedule_positions(module), use_regions=use_regions, keep=keep
    ).run(threads, context)
    add_special_case_copies(module, work.facts(), threads, context)
    work.clean_up()


def require_flat_calls(module: Module) -> None:
    """Raise PassRefused where several instructions run one computation as control flow."""
    for node in CallGraph.build(module).nodes.values():
        if reason := node.why_not_flat():
            raise PassRefused(
                "Call graph must be flattened before copy insertion.",
                help=f"run flatten-call-graph first: %{node.computation.name}: {reason}",
            )


class _Work:
    """What is done several times, and only as far as something has changed since."""

    def __init__(self, module: Module, backend: Backend, threads: tuple[str, ...]) -> None:
        self.module = module
        self.backend = backend
        self.threads = threads
        self._facts: Facts | None = None
        self._clean_at = -1

    def facts(self) -> Facts:
        """Facts about the module as it is."""
        if self._facts is None or self._facts.version != self.module.version:
            self._facts = Facts.of(self.module, self.backend)
        return self._facts

    def clean_up(self) -> None:
        """Remove tuples that deep copies left behind, and what is dead."""
        module, threads = self.module, self.threads
        if self._clean_at == module.version:
            return
        quiet = PassContext(wants_remarks=False)
        simplifier = TupleSimplifier(TupleSimplifier.Options(execution_threads=threads))
        simplifier.run(module, quiet)
        remover = DeadCodeElimination(DeadCodeElimination.Options(execution_threads=threads))
        remover.run(module, quiet)
        repair_schedule(module.computations.values())
        self._clean_at = module.version
