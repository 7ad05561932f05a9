"""The first of XLA's passes after which a module computes something else.

The dumps of one compile are a chain; each program in it is compared with the first one. Dumps that
leave the program as it is are not compared again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from hloopt.compilers.compiling import FLAGS, Compiler, Settings, compile_program
from hloopt.compilers.flags import with_large_constants
from hloopt.compilers.isolation import Run, isolate
from hloopt.compilers.programs import Program
from hloopt.compilers.stages import compilation_in
from hloopt.diagnostics import HloError, Source
from hloopt.dumps.chain import Chain, Effect, Step
from hloopt.dumps.gather import Gatherer
from hloopt.dumps.names import PIPELINE_START, Phase
from hloopt.equivalence import Reference, RunSettings
from hloopt.interpreter.errors import RunError
from hloopt.interpreter.limits import Deadline
from hloopt.ir.module import Module
from hloopt.preserves import Preserves


class Verdict(StrEnum):
    """Whether a program computes what the first one does."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNKNOWN = "cannot tell"


class Judged(NamedTuple):
    """The comparison of one stage with the first."""

    step: Step
    verdict: Verdict
    reason: str = ""
    """Why it is different, or why nobody can tell."""
    notes: Sequence[str] = ()
    """The parts that were not compared, of an equal one."""


@dataclass(slots=True)
class Found:
    """The result of a search."""

    verdict: Verdict
    """DIFFERENT where a pass was found, UNKNOWN where no stage could be judged."""
    programs: int
    """The number of stages that have another program than the one before."""
    judged: list[Judged]
    """By time; those that a search leaves out are not among them."""
    before: Step | None = None
    """The last stage that is equal, followed by `suspects`."""
    suspects: list[Step] = field(default_factory=list)
    """The stages up to the first different one: several where those between cannot be judged."""
    reason: str = ""
    is_halved: bool = False
    """Whether stages were left out, as a difference was taken to persist."""

    @property
    def skipped(self) -> list[Judged]:
        """The stages that cannot be judged."""
        return [each for each in self.judged if each.verdict is Verdict.UNKNOWN]


def judge_with(
    first: Module, settings: RunSettings, preserves: Preserves
) -> Callable[[Step], Judged]:
    """A comparison of stages with the first module, which is run once for each input."""
    reference = Reference(first, settings)

    def judge(step: Step) -> Judged:
        try:
            module = module_of(step)
        except HloError as error:
            return Judged(step, Verdict.UNKNOWN, f"it cannot be read: {error.message}")
        try:
            comparison = reference.examine(module, preserves)
        except RunError as error:
            return Judged(step, Verdict.UNKNOWN, error.message)
        mismatch = comparison.mismatch
        if mismatch is None:
            return Judged(step, Verdict.EQUAL, notes=comparison.notes)
        # A partitioner changes what a program takes and gives, which texts do not always tell.
        is_decided = mismatch.is_decided and mismatch.seed is not None
        verdict = Verdict.DIFFERENT if is_decided else Verdict.UNKNOWN
        return Judged(step, verdict, mismatch.reason)

    return judge


def module_of(step: Step) -> Module:
    """The module of a stage. Raises HloError."""
    from hloopt.files import load

    return load(step.path)


def find(chain: Chain, judge: Callable[[Step], Judged]) -> Found:
    """The stage from which on the program computes something else.

    If the last one that can be judged is different, the search halves the chain: it takes a
    difference to persist. Else all stages are judged in order, up to the first different one.
    """
    return _Search(chain, judge).find()


class _Search:
    def __init__(self, chain: Chain, judge: Callable[[Step], Judged]) -> None:
        self._chain = chain
        self._judge = judge
        self._programs = [
            step for step in chain.steps if step.effect in (Effect.PROGRAM, Effect.UNKNOWN)
        ]
        self._judged: dict[int, Judged] = {}

    def find(self) -> Found:
        itself = self._judge(self._chain.steps[0])
        if itself.verdict is not Verdict.EQUAL:
            return replace(self._found(Verdict.UNKNOWN), reason=f"first stage: {itself.reason}")
        last = next(filter(self._is_known, reversed(range(len(self._programs)))), None)
        if last is None:
            # No pass changed anything, or nothing can be told about those that did.
            return self._found(Verdict.UNKNOWN if self._programs else Verdict.EQUAL)
        is_halved = self._verdict(last) is Verdict.DIFFERENT
        low, high = self._halve(last) if is_halved else self._walk(last)
        if high is None:
            return self._found(Verdict.EQUAL)
        found = self._found(Verdict.DIFFERENT)
        found.is_halved = is_halved and len(self._judged) < len(self._programs)
        found.suspects = self._programs[low + 1 : high + 1]
        found.before = self._chain.steps[found.suspects[0].number - 1]
        found.reason = self._judged[high].reason
        return found

    def _halve(self, high: int) -> tuple[int, int]:
        """The last equal stage and the next one, which differs, of those that can be judged.

        The first is -1 where none is equal. O(log stages) of them are judged.
        """
        low = -1
        while True:
            middle = (low + high) // 2
            inner = sorted(range(low + 1, high), key=lambda place: abs(place - middle))
            known = next(filter(self._is_known, inner), None)
            if known is None:
                return low, high
            if self._verdict(known) is Verdict.EQUAL:
                low = known
            else:
                high = known

    def _walk(self, last: int) -> tuple[int, int | None]:
        low = -1
        for place in filter(self._is_known, range(last)):
            if self._verdict(place) is Verdict.DIFFERENT:
                return low, place
            low = place
        return low, None

    def _is_known(self, place: int) -> bool:
        return self._verdict(place) is not Verdict.UNKNOWN

    def _verdict(self, place: int) -> Verdict:
        if place not in self._judged:
            self._judged[place] = self._judge(self._programs[place])
        return self._judged[place].verdict

    def _found(self, verdict: Verdict) -> Found:
        judged = [self._judged[place] for place in sorted(self._judged)]
        return Found(verdict, len(self._programs), judged)


def pass_of(step: Step) -> str | None:
    """The pass that made a stage; None where the names of dumps do not tell."""
    stage = step.stage
    if stage.phase is not Phase.PASSES or stage.after == PIPELINE_START:
        return None
    return stage.after if stage.before else stage.pipeline  # a dump within a pass has no `before`


class Compared(NamedTuple):
    """The way stages are compared."""

    seeds: int
    preserves: Preserves
    seconds: float
    """The time limit of all comparisons, and of those of the pass alone."""

    def settings(self) -> RunSettings:
        """With a time limit that begins now; special values only where they decide anything."""
        return RunSettings(
            seeds=self.seeds,
            specials=self.preserves in ("bits", "rounding"),
            deadline=Deadline(self.seconds),
        )


class Alone(NamedTuple):
    """A pass alone on the module before it."""

    verdict: Verdict
    """DIFFERENT where it reproduces the difference."""
    reason: str
    place: int = 1
    """Its run, from 1, that makes the difference."""
    runs: int = 0


@dataclass(frozen=True, slots=True)
class Bisected:
    """The result of a bisection, with texts that outlive the dumps."""

    found: Found
    name: str | None
    """The pass; None where it is one of several, or where the names of dumps do not tell."""
    alone: Alone | None
    texts: tuple[str, str] | None
    """Before and after the pass; None where there is no difference."""
    version: str
    """The compiler."""
    flags: str
    """Of XLA, as its variable of the environment has them."""


def bisect(
    program: Program, compiler: Compiler, folder: Path, settings: Settings, how: Compared
) -> Bisected:
    """Compile a program, find the pass, and run it alone on the module before it.

    Three compiles, with what they leave in `folder`, and as many comparisons as stages are judged.
    Raises HloError and CompilerFailure where the first compile fails.
    """
    settings = replace(settings, flags=with_large_constants(settings.flags))
    of_chain = replace(settings, passes=".*", until_buffers=True)
    compiled = compile_program(program, compiler, folder / "chain", of_chain)
    chain = Chain.of(compilation_in(compiled.dumps), Gatherer(1, None))
    judge = judge_with(module_of(chain.steps[0]), how.settings(), how.preserves)
    found = find(chain, judge)
    name, texts, alone = None, None, None
    if found.before is not None:
        texts = _text(found.before), _text(found.suspects[-1])
        if len(found.suspects) == 1:
            name = pass_of(found.suspects[0])
        if name is not None:
            alone = _run_alone(name, module_of(found.before), compiler, folder, settings, how)
    flags = (folder / "chain" / FLAGS).read_text(encoding="utf-8")
    return Bisected(found, name, alone, texts, compiled.version, flags)


def _text(step: Step) -> str:
    return Path(step.path).read_text(encoding="utf-8")


def _run_alone(
    name: str,
    before: Module,
    compiler: Compiler,
    folder: Path,
    settings: Settings,
    how: Compared,
) -> Alone:
    """Run a pass alone on a module, and compare what it makes of it. Two compiles."""
    try:
        runs = isolate(Program.of(before), name, compiler, folder, settings)
    except HloError as error:
        return Alone(Verdict.UNKNOWN, f"it cannot be run alone: {error.message}")
    verdicts = [_judge_run(run, how) for run in runs]
    for wanted in (Verdict.DIFFERENT, Verdict.UNKNOWN, Verdict.EQUAL):
        for place, (verdict, reason) in enumerate(verdicts, 1):
            if verdict is wanted:
                return Alone(verdict, reason, place, len(runs))
    raise AssertionError("a pass that is isolated has a run")


def _judge_run(run: Run, how: Compared) -> tuple[Verdict, str]:
    from hloopt.text import parse_module

    if not run.is_changed:
        return Verdict.EQUAL, "alone it leaves the module as it is"
    try:
        before, after = (parse_module(Source("<module>", t)) for t in (run.before, run.after))
        mismatch = Reference(before, how.settings()).compare(after, how.preserves)
    except HloError as error:
        return Verdict.UNKNOWN, error.message
    if mismatch is None:
        return Verdict.EQUAL, "alone it changes nothing that the module computes"
    return Verdict.DIFFERENT if mismatch.is_decided else Verdict.UNKNOWN, mismatch.reason
