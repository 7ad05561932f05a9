"""Keep one computation as the entry."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import ClassVar

from hloopt.ir.computation import Computation
from hloopt.ir.module import Module
from hloopt.ir.ordering import computation_post_order
from hloopt.reduction.edits.edit import Count
from hloopt.reduction.edits.session import EditSession


class KeepComputation:
    """Make a called computation the entry, and drop what it does not call."""

    what: ClassVar[Count] = Count(
        "entry replaced by a computation that it calls",
        "entries replaced by a computation that they call",
    )
    one_by_one: ClassVar[bool] = True

    def parts(self, module: Module) -> Sequence[Hashable]:
        """The computations by what they hold with all they call, smallest first."""
        sizes: dict[Computation, int] = {}
        for computation in computation_post_order(module):
            called = {callee for i in computation.instructions for callee in i.called}
            sizes[computation] = len(computation) + sum(sizes[callee] for callee in called)
        return [c.name for c in sorted(sizes, key=sizes.__getitem__) if c is not module.entry]

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Make the computation of this name the entry."""
        module = session.module
        name = next(iter(parts))
        module.entry = module.computations[str(name)]
        module.entry.execution_thread = "main"
        module.changed()
