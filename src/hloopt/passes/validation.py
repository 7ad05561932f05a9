"""Translation validation: after a pass, the module must still compute what it did before."""

from __future__ import annotations

from hloopt.diagnostics import Miscompiled, Source
from hloopt.equivalence import Reference, RunSettings
from hloopt.interpreter.errors import RunError
from hloopt.ir.module import Module
from hloopt.shrink import plan_shrink
from hloopt.text import parse_module


class Validator:
    """Runs a module as it was read and as passes leave it, on the same inputs.

    One comparison takes a run of the module on every seed and device; the first one two.
    """

    def __init__(self, settings: RunSettings, *, each: bool, shrink: bool = False) -> None:
        self.each = each
        """Whether to compare after each pass that changed the module, not only after the last."""
        self.comparisons = 0
        self._settings = settings
        self._shrink = shrink
        self._source: Source | None = None
        self._reference: Reference | None = None

    def start(self, source: Source) -> None:
        """Take the module in `source` as the one that is right. Nothing runs before it changes."""
        self._source = source
        self._reference = None

    def check(self, module: Module) -> None:
        """Raise Miscompiled if `module` computes something else, RunError if that is unknown."""
        self.comparisons += 1
        try:
            reference, module = self._pair(module)
            mismatch = reference.compare(module)
        except RunError as error:
            raise RunError(
                f"cannot validate: {error.message}",
                span=error.span,
                help=_SMALLER if error.code == "HLO503" else "leave --validate out",
                code=error.code,
            ) from error
        if mismatch is None:
            return
        if not mismatch.is_decided:
            raise RunError(f"cannot validate: not decided: {mismatch.reason}", code="HLO508")
        raise Miscompiled(mismatch.reason)

    def _pair(self, module: Module) -> tuple[Reference, Module]:
        """What is right, and what to compare with it: what can shrink depends on both."""
        assert self._source is not None
        if self._shrink:
            original = parse_module(self._source)
            plan = plan_shrink([original, module])
            return Reference(plan.apply(original), self._settings), plan.apply(module)
        if self._reference is None:
            self._reference = Reference(parse_module(self._source), self._settings)
        return self._reference, module


_SMALLER = "--shrink validates with smaller dimensions"
