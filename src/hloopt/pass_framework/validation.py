"""Translation validation: after a pass, the module must still compute what it did before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hloopt.diagnostics import Miscompiled, Source
from hloopt.equivalence import Comparison, Reference, RunSettings
from hloopt.equivalence.comparison import nearest_of
from hloopt.equivalence.measures import OutputErrors
from hloopt.equivalence.pairing import Pairing
from hloopt.equivalence.path_types import ReadType
from hloopt.equivalence.reference import pair
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.special_values import Special
from hloopt.ir.module import Module
from hloopt.preserves import Preserves
from hloopt.shrink import plan_shrink
from hloopt.text import parse_module


@dataclass(slots=True)
class Validation:
    """The result of comparisons that found a module to compute what it did."""

    comparisons: int = 0
    seeds: int = 0
    """On how many ordinary inputs, each time."""
    specials: list[Special] = field(default_factory=list)
    """The kinds of special values that further inputs had."""
    on_specials: list[str] = field(default_factory=list)
    """Differences on special values alone, after passes that do not preserve these."""
    notes: list[str] = field(default_factory=list)
    """Notes on values and code that were not compared."""
    nearest: OutputErrors | None = None
    """The output nearest to its tolerance, after passes that change precision."""

    def add(self, comparison: Comparison) -> None:
        """Count another comparison in."""
        self.seeds = max(self.seeds, comparison.seeds)
        self.nearest = nearest_of(filter(None, (self.nearest, comparison.nearest)))
        for mine, new in (
            (self.specials, comparison.specials),
            (self.on_specials, comparison.on_specials),
            (self.notes, comparison.notes),
        ):
            mine += [one for one in new if one not in mine]


class Validator:
    """Runs a module as it was read and as passes leave it, on the same inputs.

    One comparison takes a run of the module on every seed and device; the first one two.
    """

    def __init__(self, settings: RunSettings, *, each: bool, shrink: bool = False) -> None:
        self.each = each
        """Whether to compare after each pass that changed the module, not only after the last."""
        self.found = Validation()
        self._settings = settings
        self._shrink = shrink
        self._source: Source | None = None
        self._reference: Reference | None = None

    def start(self, source: Source) -> None:
        """Take the module in `source` as the one that is right. Nothing runs before it changes.

        The reference is kept where the text is that of the last start.
        """
        if self._source is None or self._source.text != source.text:
            self._reference = None
        self._source = source
        self.found = Validation()

    def check(
        self, module: Module, preserves: Preserves, read_types: Sequence[ReadType] = ()
    ) -> None:
        """Raise Miscompiled if `module` computes something else, RunError if that is unknown.

        `preserves` says what passes have to leave as it was, `read_types` what the backend rounds
        by itself, as they were told.
        """
        self.found.comparisons += 1
        if self._settings.deadline is not None:
            self._settings.deadline.restart()
        try:
            reference, module = self._pair(module)
            comparison = reference.examine(module, preserves, read_types)
        except RunError as error:
            raise RunError(
                f"cannot validate: {error.message}",
                span=error.span,
                help=_help(error),
                code=error.code,
            ) from error
        mismatch = comparison.mismatch
        if mismatch is None:
            self.found.add(comparison)
            return
        if not mismatch.is_decided:
            raise RunError(f"cannot validate: not decided: {mismatch.reason}", code="HLO508")
        raise Miscompiled(mismatch.reason)

    def _pair(self, module: Module) -> tuple[Reference, Module]:
        """The reference and the module to compare with it: what can shrink depends on both."""
        assert self._source is not None
        if self._shrink:
            original = parse_module(self._source)
            pairing = pair(original, module, self._settings)
            if isinstance(pairing, Pairing) and pairing.is_cut:
                self._note(_NOT_SMALLER)
                return Reference(original, self._settings), module
            plan = plan_shrink([original, module])
            return Reference(plan.apply(original), self._settings), plan.apply(module)
        if self._reference is None:
            self._reference = Reference(parse_module(self._source), self._settings)
        return self._reference, module

    def _note(self, text: str) -> None:
        if text not in self.found.notes:
            self.found.notes.append(text)


_NOT_SMALLER = (
    "smaller dimensions (--shrink): one module computes for all devices, the other one is "
    "partitioned; their sizes do not shrink together"
)


def _help(error: RunError) -> str:
    if error.code != "HLO503":
        return "leave --validate out"
    is_told = error.help is not None and "--shrink" in error.help
    return "; ".join(filter(None, (error.help, "" if is_told else _SMALLER)))


_SMALLER = "--shrink validates with smaller dimensions"
