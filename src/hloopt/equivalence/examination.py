"""One comparison of two modules: seed by seed, until they differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from hloopt.equivalence.comparison import Comparison, Mismatch
from hloopt.equivalence.coverage import not_run
from hloopt.equivalence.effects import OtherEffects, effect_pairs, first_effect
from hloopt.equivalence.judgement import Judge, Noises
from hloopt.equivalence.measures import OutputErrors, Pair
from hloopt.equivalence.pairing import Pairing
from hloopt.equivalence.room import Room
from hloopt.equivalence.runs import Run, Runs, Trial
from hloopt.equivalence.settings import RunSettings
from hloopt.interpreter.effects import RunRecord
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.exactness import depends_on_layout, rounds
from hloopt.interpreter.rounding_noise import MovableRoundings
from hloopt.interpreter.special_values import Special
from hloopt.ir.instruction import Instruction
from hloopt.ir.opcode import Opcode
from hloopt.preserves import Preserves

_DAMPINGS = (4, 8)
"""Powers of two that random floats are divided by, one after the other, until rounding is not
amplified any more."""
_BEYOND_US = ("HLO501", "HLO502", "HLO503", "HLO505", "HLO506")
"""Errors that say nothing about a program."""
_MANY_TIMES = 100
_MOST_NOTES = 4


class Examination:
    """Runs both modules of a pairing, and compares what they did."""

    def __init__(
        self,
        left: Runs,
        pairing: Pairing,
        settings: RunSettings,
        judge: Judge,
        special_judge: Judge,
        preserves: Preserves,
        movable: MovableRoundings | None = None,
    ) -> None:
        self._left = left
        self._right = Runs(pairing.right, pairing.right_plans, settings)
        self._pairing = pairing
        self._settings = settings
        self._judge = judge
        self._special_judge = special_judge
        self._preserves = preserves
        self._movable = movable
        """Of the first module; None where passes round nothing at other places."""
        self._done = RunRecord(), RunRecord()
        """The records of either module, over all seeds."""
        self._damped: list[str] = []
        """The questions that larger inputs left open."""
        self._left_open: list[str] = []
        """Differences that inputs with special values left undecided."""

    def run(self) -> Comparison:
        """Compare seed by seed. Raises RunError where the first module cannot be run."""
        left, right = self._pairing.left, self._pairing.right
        found = Comparison(devices=(left.grid.device_count, right.grid.device_count))
        inputs = self._settings.inputs
        seeds = 1 if inputs.are_all_given(left.module.entry) else self._settings.seeds
        for seed in range(seeds):
            found.seeds += 1
            mismatch = self._on_calm_inputs(seed)
            if mismatch is None:
                continue
            mismatch = self._in_view_of_stand_ins(mismatch)
            if found.mismatch is None or mismatch.is_decided:
                found.mismatch = mismatch
            if mismatch.is_decided:
                break
        found.outputs = list(self._judge.errors.values())
        found.mismatch = found.mismatch or self._says_nothing(found.outputs)
        if found.mismatch is None:
            for special in self._left.specials():
                self._on_special(special, found)
                if found.mismatch is not None:
                    break
        found.notes = list(self._notes())
        turned = self._judge.turned or self._special_judge.turned
        if found.mismatch is None and turned is not None:
            found.notes.append(f"the signs of zeros: {turned}")
        return found

    def _on_special(self, special: Special, found: Comparison) -> None:
        """On inputs with special values: note what differs there only, as what it counts."""
        trial = Trial(0, special=special)
        try:
            mine = self._left.of(trial)
        except RunError as error:
            self._left_open.append(f"inputs with {special}: {error.message}")
            return
        found.specials.append(special)
        mismatch = self._on_trial(trial, mine, self._special_judge)
        mismatch = mismatch and self._in_view_of_stand_ins(mismatch)
        if mismatch is None:
            return
        if not mismatch.is_decided:
            self._left_open.append(f"inputs with {special}: {mismatch.reason}")
        elif self._preserves in ("finite", "precision"):
            found.on_specials.append(mismatch.reason)
        else:
            found.mismatch = replace(
                mismatch, reason=f"on special values alone, {mismatch.reason}", special=special
            )

    def _on_calm_inputs(self, seed: int) -> Mismatch | None:
        """On floats that are smaller and smaller, as long as rounding may explain what differs."""
        first = self._on_seed(Trial(seed))
        if first is None or first.difference is None or first.is_decided:
            return first
        if self._settings.inputs.given or self._preserves == "precision":
            return first  # smaller floats may round to nothing in narrow types
        for damping in _DAMPINGS:
            mismatch = self._on_seed(Trial(seed, damping))
            if mismatch is None:
                self._damped.append(
                    f"floats of the usual size, where {first.reason} "
                    f"They were made {2**damping} times smaller."
                )
            if mismatch is None or mismatch.is_decided:
                return mismatch
        return first

    def _on_seed(self, trial: Trial) -> Mismatch | None:
        return self._on_trial(trial, self._left.of(trial), self._judge)

    def _on_trial(self, trial: Trial, mine: Run, judge: Judge) -> Mismatch | None:
        self._done[0].add(mine.record)
        try:
            other = self._right.fresh(trial, beside=self._left.held(mine))
        except RunError as error:
            is_decided = self._is_other_behaviour(error, mine.record)
            reason = f"it cannot be run: {error.message}"
            return Mismatch(reason, trial.seed, is_decided=is_decided)
        self._done[1].add(other.record)
        pairs = list(self._pairing.pairs(mine.results, other.results))
        if self._compares_effects():
            for found in effect_pairs(mine.record, other.record):
                if isinstance(found, OtherEffects):
                    reason = f"{found.reason}{self._where(found.device, trial)}"
                    return Mismatch(reason, trial.seed, found.device)
                pairs.append(found)
        held = self._left.held(mine) + other.size
        room = Room(self._settings.memory, held, self._pairing.left.module.entry.root)
        return self._judged(mine, pairs, trial, judge, room)

    def _judged(
        self, mine: Run, pairs: list[Pair], trial: Trial, judge: Judge, room: Room
    ) -> Mismatch | None:
        touches = depends_on_layout if self._preserves == "bits" else rounds
        differences = judge.judge(
            pairs,
            trial.seed,
            lambda: self._noises(mine, touches, room, judge),
            room,
        )
        decided = next((d for d in differences if d.is_decided), None)
        if decided is not None:
            reason = f"{decided.describe()}{self._where(decided.device, trial)}"
            return Mismatch(reason, trial.seed, decided.device, decided)
        if not differences:
            return None
        worst = max(differences, key=lambda d: d.error)
        reason = (
            f"{worst.describe()}{self._where(worst.device, trial)}, {judge.why_not_decided(worst)} "
            f"{self._left.amplifier_text(mine, worst.leaf)}"
        )
        return Mismatch(reason, trial.seed, worst.device, worst, is_decided=False)

    def _noises(
        self, mine: Run, touches: Callable[[Instruction], bool], room: Room, judge: Judge
    ) -> Noises:
        """The effect of rounding noise; of roundings at other places only where such may come."""
        found = self._left.noises(mine, touches, room, self._movable)
        wide = [] if self._movable is None else [key for key in found if judge.keeps_wide(key[1])]
        if not wide:
            return found
        as_they_are = self._left.noises(mine, touches, room)
        return {**found, **{key: as_they_are[key] for key in wide if key in as_they_are}}

    def _where(self, device: int, trial: Trial) -> str:
        several = max(self._pairing.left.grid.device_count, self._pairing.right.grid.device_count)
        return f"{f' on device {device}' if several > 1 else ''}{trial.describe()}"

    def _is_other_behaviour(self, error: RunError, mine: RunRecord) -> bool:
        """Whether a program that fails does something else, and is not just beyond what we can run.

        One that runs on and on, beyond what the first one took by far, does. Only loops do: a
        reduction that is no operation of NumPy any more takes a step for each element.
        """
        if error.code == "HLO503" and "steps" in error.message:
            has_loop = next(iter(self._pairing.right.program.instructions(Opcode.WHILE)), None)
            limit = self._settings.steps or 0
            return has_loop is not None and mine.steps * _MANY_TIMES < limit
        return error.code not in _BEYOND_US

    def _compares_effects(self) -> bool:
        left, right = self._pairing.left, self._pairing.right
        return self._settings.engine is None and left.grid == right.grid

    # -- what says nothing --------------------------------------------------------------------

    def _in_view_of_stand_ins(self, mismatch: Mismatch) -> Mismatch:
        """Stand-ins that only one of the modules has, or has parts of, tell nothing."""
        if mismatch.difference is None or not mismatch.is_decided:
            return mismatch
        left, right = (record.made_up for record in self._done)
        other = [what for what in {**left, **right} if (what in left) != (what in right)]
        if other:
            reason = f"{other[0]} is made up, and only one of the modules has it"
        elif left and self._pairing.is_cut:
            reason = f"{next(iter(left))} is made up, of whole arrays and of parts of them"
        elif self._pairing.is_cut and any(record.is_fed for record in self._done):
            reason = "what the host feeds is made up, of whole arrays and of parts of them"
        else:
            return mismatch
        return replace(mismatch, reason=f"{mismatch.reason}; {reason}", is_decided=False)

    def _says_nothing(self, outputs: list[OutputErrors]) -> Mismatch | None:
        """Outputs that are nowhere finite, in both, say nothing about the programs."""
        if self._settings.inputs.fill == "nan-trap":
            return None
        for output in outputs:
            if 0 < output.elements == output.not_finite and not output.unequal:
                source = self._left.source_of_nan(self._left.of(Trial(0)), output.leaf)
                if source:
                    return Mismatch(
                        f"{output.name} is nowhere finite in either module on these inputs, from "
                        f"{source} on: give inputs of its own with --input",
                        is_decided=False,
                    )
        return None

    def _notes(self) -> Iterator[str]:
        left, right = self._pairing.left, self._pairing.right
        if not self._compares_effects():
            effect = first_effect(left.program) or first_effect(right.program)
            if effect is not None:
                is_engine = self._settings.engine is not None
                why = "XLA tells results only" if is_engine else "they run on different devices"
                yield f"what %{effect.name} and the like send out: {why}"
        yield from self._damped[:1]
        yield from self._left_open
        for what in {**self._done[0].made_up, **self._done[1].made_up}:
            yield f"{what}: its values are made up"
        lines = dict.fromkeys(
            line
            for placement, record in zip((left, right), self._done, strict=True)
            if record.ran
            for line in not_run(placement.program, placement.module, record.ran)
        )
        yield from list(lines)[:_MOST_NOTES]
        if len(lines) > _MOST_NOTES:
            yield f"and {len(lines) - _MOST_NOTES:,} more that never ran"
        recognized = self._pairing.recognized
        if recognized:
            names = ", ".join(recognized[:_MOST_NOTES]) + ", …" * (len(recognized) > _MOST_NOTES)
            yield f"which device has which part of {names}: no sharding says so, the values did"
