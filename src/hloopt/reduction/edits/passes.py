"""Run passes that simplify."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Sequence
from typing import ClassVar

from hloopt.ir.module import Module
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import find_pass
from hloopt.reduction.edits.edit import Count
from hloopt.reduction.edits.session import EditSession

_PASSES = (*("tuple-simplifier", "dce", "cse", "simplify-while-loops", "constant-folding"),)


class RunPasses:
    """Run a pass that makes modules smaller."""

    what: ClassVar[Count] = Count("simplifying pass run", "simplifying passes run")
    one_by_one: ClassVar[bool] = True

    def __init__(self, names: Sequence[str] = _PASSES) -> None:
        self._names = names

    def parts(self, module: Module) -> Sequence[Hashable]:
        """The names of the passes."""
        return self._names

    def apply(self, session: EditSession, parts: Collection[Hashable]) -> None:
        """Run those of these names."""
        for name in self._names:
            if name in parts:
                find_pass(name)().run(session.module, PassContext(wants_remarks=False))
