"""Give every call its own computation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from hloopt.analysis.calls import callees_first
from hloopt.ir.clone import clone_computation
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import Opcode
from hloopt.pass_framework.base import (
    ModulePass,
    PassContext,
    PassOptions,
    XlaPass,
    is_on_thread,
    option,
    register,
)


@register(
    "flatten-call-graph",
    preserves="bits",
    xla=XlaPass("FlattenCallGraph", "xla/hlo/transforms/simplifiers/flatten_call_graph.h"),
)
class FlattenCallGraph(ModulePass):
    """Clone computations until each is called from one place.

    Reducers, comparators and the like included. The first caller keeps the computation; a caller
    with several references to it (both branches of a conditional) gets a clone for each. What a
    clone calls is cloned with it. Linear in the size of the result, which can be exponentially
    larger than the module.
    """

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Options(PassOptions):
        skip_cloning: Literal["none", "call-only"] | Callable[[Computation], bool] = option(
            "none", "what stays shared: nothing, or computations that only call instructions call"
        )
        execution_threads: tuple[str, ...] = option((), "only computations on these; none: all")

    options: Options

    def run(self, module: Module, context: PassContext) -> bool:
        if all(sum(c.callers.values()) < 2 for c in module.computations.values()):
            return False  # saves the order, which takes longer than all else
        changed = False
        for computation in callees_first(module):
            changed |= self._flatten(computation, context)
        return changed

    def _flatten(self, computation: Computation, context: PassContext) -> bool:
        callers = [c for c in computation.callers if self._selects(c.parent)]
        references = sum(computation.callers[caller] for caller in callers)
        if references < 2 or not self._selects(computation) or self._is_skipped(computation):
            return False
        changed = False
        for number, caller in enumerate(callers):
            if number == 0 and computation.callers[caller] == 1:
                continue
            if not context.apply(caller, f"gets its own copy of %{computation.name}"):
                break
            self._give_own_copies(caller, computation, context)
            changed = True
        return changed

    def _give_own_copies(
        self, caller: Instruction, computation: Computation, context: PassContext
    ) -> None:
        called = list(caller.called)
        for i, callee in enumerate(called):
            if callee is computation:
                called[i] = self._clone(computation, context)
        caller.set_called(tuple(called))

    def _clone(self, computation: Computation, context: PassContext) -> Computation:
        """A clone of the computation and, below it, of everything it calls."""
        result, _ = clone_computation(computation)
        context.count("computations cloned")
        stack = [result]
        while stack:
            clone = stack.pop()
            for caller in calls_of(clone):
                called = list(caller.called)
                for i, callee in enumerate(called):
                    if not self._is_skipped(callee):
                        called[i], _ = clone_computation(callee)
                        context.count("computations cloned")
                        stack.append(called[i])
                caller.set_called(tuple(called))
        return result

    def _is_skipped(self, computation: Computation) -> bool:
        skip = self.options.skip_cloning
        if callable(skip):
            return skip(computation)
        return skip == "call-only" and all(c.opcode is Opcode.CALL for c in computation.callers)

    def _selects(self, computation: Computation) -> bool:
        return is_on_thread(computation, self.options.execution_threads)


def calls_of(computation: Computation) -> list[Instruction]:
    """The instructions of the computation that call something, in order."""
    return [i for i in computation.instructions if i.called]
