"""The runs of a module that others are compared with: plain, watched, and with rounding noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from hloopt.equivalence.amplification import find_amplifier, first_not_finite
from hloopt.equivalence.effects import effect_pairs
from hloopt.equivalence.judgement import Noises, merged, noise_of
from hloopt.equivalence.measures import Index, Pair
from hloopt.equivalence.pairing import matching
from hloopt.equivalence.placement import Placement
from hloopt.equivalence.room import Room, bytes_held
from hloopt.equivalence.settings import RunSettings
from hloopt.equivalence.signature import place_text
from hloopt.interpreter.array_plans import ArrayPlan
from hloopt.interpreter.effects import RunRecord
from hloopt.interpreter.evaluation import Observer
from hloopt.interpreter.host import Host
from hloopt.interpreter.rounding_noise import MovableRoundings, RoundingNoise
from hloopt.interpreter.special_values import Special
from hloopt.interpreter.values import Value
from hloopt.ir.instruction import Instruction

_NOISE_SEEDS = (1, 2)
"""Runs with rounding noise that stand for all that rounding may do."""
_MOVING_SEEDS = (1, 2, 3, 4)
"""The same, where roundings may be at other places."""


_MOST_KEPT = 1 << 30
"""Bytes of inputs and results."""
_KEPT_OF_MEMORY = 8
"""The part of the memory that may be kept for later is one of so many."""


class Trial(NamedTuple):
    """On which inputs modules run."""

    seed: int
    damping: int = 0
    """Floats are made smaller by two to this power."""
    special: Special | None = None
    """Special values among them."""

    def describe(self) -> str:
        """For a message: `(seed 1)`."""
        if self.special is not None:
            return f" (inputs with {self.special})"
        return f" (seed {self.seed})"


class Run(NamedTuple):
    """The run of a module on one seed."""

    arguments: Sequence[Sequence[Value]]
    results: list[Value]
    record: RunRecord
    host: Host
    size: int
    """Bytes of arguments, results, and what went out or came in."""


class Runs:
    """Runs a module on demand, and keeps what it did for every seed. All raise RunError."""

    def __init__(
        self, placement: Placement, plans: Sequence[ArrayPlan | None], settings: RunSettings
    ) -> None:
        self.placement = placement
        self.plans = plans
        self._settings = settings
        self._kept: dict[Trial, Run] = {}
        bound = settings.memory
        self._room = _MOST_KEPT if bound is None else min(_MOST_KEPT, bound // _KEPT_OF_MEMORY)
        self._kept_bytes = 0

    def of(self, trial: Trial) -> Run:
        """A plain run."""
        found = self._kept.get(trial)
        if found is None:
            found = self.fresh(trial, self._kept_bytes)
            if self._kept_bytes + found.size <= self._room:
                self._kept_bytes += found.size
                self._kept[trial] = found
        return found

    def held(self, run: Run) -> int:
        """Bytes that one run and all that are kept take together."""
        is_kept = any(run is kept for kept in self._kept.values())
        return self._kept_bytes + (0 if is_kept else run.size)

    def fresh(self, trial: Trial, beside: int) -> Run:
        """The same, not kept, `beside` bytes of other runs."""
        settings = self._on_inputs_of(trial)
        arguments = settings.arguments(self.placement, trial.seed, self.plans, beside)
        host = settings.host(trial.seed)
        record = RunRecord()
        results = settings.run(self.placement, arguments, record=record, host=host, beside=beside)
        sent = [effect.operands for done in record.effects.values() for effect in done]
        size = bytes_held((*map(tuple, arguments), *results, *sent))
        return Run(arguments, results, record, host, size)

    def _on_inputs_of(self, trial: Trial) -> RunSettings:
        inputs = self._settings.inputs._replace(damping=trial.damping, special=trial.special)
        return self._settings._replace(inputs=inputs)

    def specials(self) -> list[Special]:
        """The kinds of special values that inputs are to hold, and can."""
        if not self._settings.specials:
            return []
        return self._settings.inputs.specials(self.placement.module.entry, self.plans)

    def noises(
        self,
        run: Run,
        touches: Callable[[Instruction], bool],
        room: Room,
        movable: MovableRoundings | None = None,
    ) -> Noises:
        """The effect of rounding noise, in some operations, on the outputs of a run and on what it
        sends out, in the room that is left beside it. `movable` as `RoundingNoise` has it."""
        plain = run
        if self._settings.engine is not None:
            plain = self._again(run, beside=room.held)
            room = room.beside(plain.size)
        found = []
        for seed in _NOISE_SEEDS if movable is None else _MOVING_SEEDS:
            noise = RoundingNoise(seed, touches, movable)
            noisy = self._again(run, noise=noise, beside=room.held)
            pairs: list[Pair] = []
            for device, (a, b) in enumerate(zip(plain.results, noisy.results, strict=True)):
                pairs += matching(device, a, b)
            for found_effect in effect_pairs(plain.record, noisy.record):
                if isinstance(found_effect, Pair):
                    pairs.append(found_effect)
            found.append(noise_of(pairs, room.beside(noisy.size)))
        return merged(found)

    def _again(
        self,
        run: Run,
        noise: RoundingNoise | None = None,
        observer: Observer | None = None,
        beside: int = 0,
    ) -> Run:
        """The run once more, by the interpreter."""
        record = RunRecord()
        arguments = run.arguments
        if noise is not None:
            parameters = self.placement.program.entry.parameters
            arguments = [list(map(noise.disturb, parameters, own)) for own in arguments]
        results = self._settings.interpret(
            self.placement,
            arguments,
            run.host,
            observer=observer,
            noise=noise,
            record=record,
            beside=beside,
        )
        return Run(run.arguments, results, record, run.host, bytes_held(results))

    def watch(self, trial: Trial, observer: Observer, beside: int) -> None:
        """Run it by the interpreter, `beside` bytes of other values, and show all values."""
        settings = self._on_inputs_of(trial)
        arguments = settings.arguments(self.placement, trial.seed, self.plans, beside)
        host = settings.host(trial.seed)
        settings.interpret(self.placement, arguments, host, observer=observer, beside=beside)

    def amplifier_text(self, run: Run, leaf: Index) -> str:
        """The operation that makes the most of rounding in an output, in a sentence."""
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
