"""The runs of a module that others are compared with: plain, watched, and with rounding noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hloopt.equivalence.amplification import find_amplifier, first_not_finite
from hloopt.equivalence.effects import effect_pairs
from hloopt.equivalence.judgement import Noises, merged, noise_of
from hloopt.equivalence.measures import Index, Pair
from hloopt.equivalence.pairing import matching
from hloopt.equivalence.placement import Placement
from hloopt.equivalence.settings import RunSettings
from hloopt.equivalence.signature import place_text
from hloopt.interpreter.array_plans import ArrayPlan
from hloopt.interpreter.effects import RunRecord
from hloopt.interpreter.evaluation import Observer
from hloopt.interpreter.host import Host
from hloopt.interpreter.rounding_noise import RoundingNoise
from hloopt.interpreter.values import Value

_NOISE_SEEDS = (1, 2)
"""Runs with rounding noise that stand for all that rounding may do."""


class Run(NamedTuple):
    """What a module did on one seed."""

    arguments: Sequence[Sequence[Value]]
    results: list[Value]
    record: RunRecord
    host: Host


class Runs:
    """Runs a module on demand, and keeps what it did for every seed. All raise RunError."""

    def __init__(
        self, placement: Placement, plans: Sequence[ArrayPlan | None], settings: RunSettings
    ) -> None:
        self.placement = placement
        self.plans = plans
        self._settings = settings
        self._kept: dict[tuple[int, int], Run] = {}

    def of(self, seed: int, damping: int = 0) -> Run:
        """A plain run; floats are made smaller by two to the power of `damping`."""
        key = seed, damping
        if key not in self._kept:
            self._kept[key] = self.fresh(seed, damping)
        return self._kept[key]

    def fresh(self, seed: int, damping: int = 0) -> Run:
        """The same, not kept."""
        arguments = self._settings.arguments(self.placement, seed, self.plans, damping)
        record = RunRecord()
        host = self._settings.host(seed, damping)
        results = self._settings.run(self.placement, arguments, record=record, host=host)
        return Run(arguments, results, record, host)

    def noises(self, run: Run) -> Noises:
        """What rounding noise does to the outputs of a run, and to what it sends out."""
        plain = run
        if self._settings.engine is not None:
            plain = self._again(run)
        found = []
        for seed in _NOISE_SEEDS:
            noisy = self._again(run, noise=RoundingNoise(seed))
            pairs: list[Pair] = []
            for device, (a, b) in enumerate(zip(plain.results, noisy.results, strict=True)):
                pairs += matching(device, a, b)
            for found_effect in effect_pairs(plain.record, noisy.record):
                if isinstance(found_effect, Pair):
                    pairs.append(found_effect)
            found.append(noise_of(pairs))
        return merged(found)

    def _again(
        self, run: Run, noise: RoundingNoise | None = None, observer: Observer | None = None
    ) -> Run:
        """The run once more, by the interpreter."""
        record = RunRecord()
        results = self._settings.interpret(
            self.placement, run.arguments, run.host, observer=observer, noise=noise, record=record
        )
        return Run(run.arguments, results, record, run.host)

    def amplifier_text(self, run: Run, leaf: Index) -> str:
        """Which operation makes the most of rounding in an output, in a sentence."""
        noise = RoundingNoise(_NOISE_SEEDS[0])
        found = find_amplifier(
            self.placement.program,
            leaf,
            lambda observer: self._again(run, observer=observer),
            lambda observer: self._again(run, noise, observer),
        )
        if found is None:
            return "No single operation on device 0 amplifies it."
        return found.describe(self.placement.module)

    def source_of_nan(self, run: Run, leaf: Index) -> str:
        """The operation that first gives what is not finite; empty where inputs or constants do."""
        first = first_not_finite(
            self.placement.program, leaf, lambda observer: self._again(run, observer=observer)
        )
        return "" if first is None else f"%{first.name}{place_text(self.placement.module, first)}"
