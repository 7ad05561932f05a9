"""The chain of passes of one compilation: what each dump changed, against the one before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hloopt.diagnostics import HloError, counted, did_you_mean
from hloopt.dumps.facts import Depth, Facts
from hloopt.dumps.folder import Compilation
from hloopt.dumps.gather import Gatherer
from hloopt.dumps.logs import Times
from hloopt.dumps.names import PIPELINE_START, Phase, Stage
from hloopt.plain_data import to_plain


class Effect(StrEnum):
    """The difference of a stage from the one before."""

    FIRST = "first"
    NOTHING = "nothing"
    """The bytes are the same."""
    TEXT = "text"
    """The program is the same: names or metadata differ."""
    PROGRAM = "program"
    UNKNOWN = "unknown"
    """One of the two cannot be read."""


@dataclass(frozen=True, slots=True)
class Step:
    """A stage, and what was done since the one before it."""

    number: int
    """From 0."""
    stage: Stage
    path: str
    effect: Effect
    facts: Facts | None

    @property
    def maker(self) -> str:
        """The pass that is named as the one that has run."""
        return self.stage.maker


@dataclass(frozen=True, slots=True)
class Chain:
    """The stages of one compilation in the order of time."""

    compilation: Compilation
    steps: list[Step]

    @classmethod
    def of(cls, compilation: Compilation, gatherer: Gatherer) -> Chain:
        """Look at all stages of a compilation whose order is known. Near-linear in their bytes."""
        stages = compilation.chain()
        paths = [compilation.hlo(stage).path for stage in stages]
        found = gatherer.facts(paths, Depth.STEP)
        steps: list[Step] = []
        before: Step | None = None
        for number, (stage, path) in enumerate(zip(stages, paths, strict=True)):
            facts = found.of(path, Depth.STEP)
            effect = _effect(before, facts, path, found.contents)
            before = Step(number, stage, path, effect, facts)
            steps.append(before)
        return cls(compilation, steps)

    @property
    def changes(self) -> list[Step]:
        """The steps that changed the program."""
        return [step for step in self.steps if step.effect is Effect.PROGRAM]

    def find(self, name: str) -> Step:
        """The step of a pass: by `algsimp`, `simplification: algsimp`, `algsimp#2` for the second
        run that was dumped, or the number of the dump, `0012`.

        Raises HloError if there is none, or several of which none is named.
        """
        wanted, _, number = name.partition("#")
        found = [s for s in self.steps if wanted in (s.stage.after, s.maker) and s.number]
        if not found and wanted.isdecimal():
            dumps = (s for s in self.steps if s.number and s.stage.phase is Phase.PASSES)
            found = [s for s in dumps if s.stage.number == int(wanted)]
        if not found:
            names = {s.stage.after for s in self.steps} - {PIPELINE_START}
            raise HloError(
                f"no dump is of the pass '{wanted}'",
                help=did_you_mean(wanted, names) or "`--passes` lists the dumps there are",
            )
        if number:
            if not number.isdecimal() or not 0 < int(number) <= len(found):
                there_are = _dumps_of(wanted, len(found))
                raise HloError(f"'{name}': {there_are}")
            return found[int(number) - 1]
        if len(found) > 1:
            changed = [step for step in found if step.effect is Effect.PROGRAM]
            if len(changed) == 1:
                return changed[0]
            numbers = ", ".join(f"{wanted}#{n}" for n in range(1, len(found) + 1))
            raise HloError(_dumps_of(wanted, len(found)), help=f"name one: {numbers}")
        return found[0]


def _dumps_of(wanted: str, count: int) -> str:
    verb = "is" if count == 1 else "are"
    return f"there {verb} {counted(count, 'dump')} of '{wanted}'"


def _effect(
    before: Step | None, facts: Facts | None, path: str, contents: Mapping[str, str]
) -> Effect:
    if before is None:
        return Effect.FIRST
    if contents.get(before.path) == contents.get(path) is not None:
        return Effect.NOTHING
    if before.facts is None or facts is None:
        return Effect.UNKNOWN
    same = before.facts.fingerprint == facts.fingerprint
    return Effect.TEXT if same else Effect.PROGRAM


def choose(compilations: Sequence[Compilation], name: str) -> Compilation:
    """The compilation that a user means: by its name, its program, or `14`, `14.jit_step` or
    `module_14.jit_step`, behind the time if the names of files have one.

    Of several on several hosts the first; a program that was compiled more than once needs a
    number. Raises HloError.
    """
    found = [c for c in compilations if name in (c.name, c.program)]
    if not found:
        stamp, _, rest = name.rpartition("module_")
        number, _, module = rest.partition(".")
        if number.isdecimal():
            found = [
                c
                for c in compilations
                if c.id == int(number) and module in ("", c.name) and stamp in ("", _stamp(c))
            ]
    if not found:
        names = {c.name for c in compilations}
        raise HloError(
            f"there is no module '{name}'",
            help=did_you_mean(name, names) or f"there are {_listed(names)}",
        )
    first = found[0]
    others = [c for c in found if (c.run, c.host) == (first.run, first.host)]
    if len(others) > 1:
        names = {f"{_stamp(c)}module_{c.id}.{c.name}" for c in others}
        raise HloError(
            f"'{name}' was compiled {counted(len(others), 'time')}",
            help=f"name one by its number: {_listed(names)}",
        )
    return first


def _stamp(compilation: Compilation) -> str:
    """The beginning of the names of its files, where XLA wrote times into them."""
    return f"{compilation.timestamp}." if compilation.timestamp else ""


_MOST_LISTED = 8


def _listed(names: set[str]) -> str:
    shown = sorted(names)[:_MOST_LISTED]
    return ", ".join(shown) + (", …" if len(names) > _MOST_LISTED else "")


def chain_to_json(chain: Chain, times: Times | None = None) -> dict[str, Any]:
    """A chain as plain data; with `times` the seconds that passes took, all runs together."""
    one = chain.compilation
    return {
        **{"module": one.name, "id": one.id, "host": one.host, "run": one.run},
        "dumps": len(chain.steps),
        "changed": len(chain.changes),
        "steps": [
            {
                "number": step.number,
                "stage": step.stage.label,
                "pipeline": step.stage.pipeline,
                "pass": step.stage.after,
                "file": step.path,
                "effect": step.effect.value,
                "seconds": _seconds(chain, step, times or {}),
                "facts": to_plain(step.facts),
            }
            for step in chain.steps
        ],
    }


def _seconds(chain: Chain, step: Step, times: Times) -> float | None:
    found = times.get((chain.compilation.name, step.stage.pipeline, step.stage.after))
    return None if found is None else found.seconds
