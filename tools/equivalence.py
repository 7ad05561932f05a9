#!/usr/bin/env python3
"""Run the corpus through a pipeline and compare what modules compute before and after.

    tools/equivalence.py --shared DIR [--pipeline simplify] [--passes "cse,dce"] [--save DIR]
                         [--engine xla|numpy]

A module computes the same when it gives the same outputs before and after, on reproducible random
inputs, on all devices the module is for: on real XLA:CPU, or with `--engine numpy` on our
interpreter, after each pass (`hloopt opt --validate each`). Ends with `N equal, M different,
K unchanged, L not runnable`; exits 1 if a module differs, 2 for wrong usage. XLA needs jaxlib, here
or in the Python that $HLO_ORACLE_PYTHON names.
"""

from __future__ import annotations

import argparse
import multiprocessing
import signal
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from corpus import CorpusEntry, add_choice, chosen_entries
from hloopt.diagnostics import HloError, HloVerifyError, PassFailure, PassRefused, Source
from hloopt.equivalence import RunSettings
from hloopt.ir import Module, Opcode
from hloopt.pass_framework.library import find_pipeline
from hloopt.pass_framework.pipeline import Pipeline, PipelineStep
from hloopt.pass_framework.pipeline_text import parse_passes
from hloopt.pass_framework.runner import PipelineRunner
from hloopt.pass_framework.validation import Validator
from hloopt.text import parse_module, print_module
from oracle_script import oracle_script

if TYPE_CHECKING:
    from numpy.typing import NDArray

STATUSES = ("equal", "different", "unchanged", "not runnable")

REFUSED = "refused, though XLA runs it"
"""The kind of modules to look at: invalid, or our verifier is too strict."""
REFUSED_BY_PASS = "refused by a pass"
"""The kind of modules that ask for what a pass cannot do, and says so."""

_MOST_STEPS = 1_000_000
_MOST_MEMORY = 1 << 30
_STATEFUL = frozenset((Opcode.RNG, Opcode.RNG_GET_AND_UPDATE_STATE))
"""Their values depend on the module around them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The passes to run on each module, and the way to compare; picklable."""

    oracle: Path
    """The folder of xla_oracle.py."""
    pipeline: str | None = "simplify"
    passes: str = ""
    """Run after the pipeline."""
    seeds: int = 2
    """On how many inputs."""
    timeout: float = 60.0
    """Seconds for one run of a module on XLA, or for all runs of it on our interpreter."""
    engine: str = "xla"
    """"xla", or "numpy" for our interpreter."""

    def steps(self) -> Pipeline:
        """The named pipeline, then the passes. Raises PipelineError."""
        named = [PipelineStep(pipeline=find_pipeline(self.pipeline))] if self.pipeline else []
        rest = parse_passes(self.passes, find_pipeline).steps if self.passes else ()
        return Pipeline(name="equivalence", steps=(*named, *rest))


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one module."""

    id: str
    status: str
    """One of STATUSES."""
    kind: str = ""
    """The reason why it is not runnable, in a word."""
    reason: str = ""
    texts: tuple[str, str] | None = None
    """Before and after, where they differ."""


@dataclass(slots=True)
class Report:
    """Counts and failures of a sweep."""

    counts: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    """Of the modules that are not runnable."""
    failures: list[Verdict] = field(default_factory=list)

    def add(self, verdict: Verdict) -> None:
        self.counts[verdict.status] += 1
        if verdict.status == "not runnable":
            self.kinds[verdict.kind] += 1
        if verdict.status == "different":
            self.failures.append(verdict)

    def summary(self) -> str:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        counted = ", ".join(f"{self.counts[status]} {status}" for status in STATUSES)
        return f"{counted} ({kinds})" if kinds else counted


class TooSlow(BaseException):
    """A module took too long; no Exception, so that nothing takes it for a failure of a pass."""


class Validation:
    """Judges modules one by one with `hloopt opt --validate each`. Raises PipelineError."""

    def __init__(self, settings: Settings) -> None:
        self._pipeline = settings.steps()
        self._run = RunSettings(seeds=settings.seeds, steps=_MOST_STEPS, memory=_MOST_MEMORY)
        self._seconds = round(settings.timeout)
        signal.signal(signal.SIGALRM, self._too_slow)

    def _too_slow(self, number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"takes more than {self._seconds} s")

    def check(self, id: str, before: str) -> Verdict:
        """Transform a module, and compare after each pass that changed it."""
        try:
            module = parse_module(Source(id, before))
        except HloError as error:
            return Verdict(id, "not runnable", "invalid", error.message)
        validator = Validator(self._run, each=True)
        signal.alarm(self._seconds)
        try:
            PipelineRunner(validator=validator).run(self._pipeline, module)
        except PassRefused as error:
            return Verdict(id, "not runnable", REFUSED_BY_PASS, error.message)
        except PassFailure as error:
            texts = (before, print_module(module))
            return Verdict(id, "different", reason=error.message, texts=texts)
        except HloVerifyError as error:
            return Verdict(id, "not runnable", "invalid", error.message)
        except HloError as error:
            return Verdict(id, "not runnable", error.code or "", error.message)
        except TooSlow as error:
            return Verdict(id, "not runnable", "slow", str(error))
        finally:
            signal.alarm(0)
        return Verdict(id, "equal" if validator.found.comparisons else "unchanged")


class Checker:
    """Judges modules one by one; loads the oracle, which keeps XLA in child processes.

    Raises PipelineError for wrong settings, ImportError without the oracle or without XLA.
    """

    def __init__(self, settings: Settings) -> None:
        self._oracle = oracle_script(settings.oracle, "xla_oracle")
        self._settings = settings
        self._pipeline = settings.steps()

    def check(self, id: str, before: str) -> Verdict:
        """Transform a module and compare. Some 0.2 s for a module that runs."""
        try:
            module = parse_module(Source(id, before))
            printed = print_module(module)
            PipelineRunner().run(self._pipeline, module)
        except HloVerifyError as error:
            return self._refused(id, before, error)
        except PassRefused as error:
            return Verdict(id, "not runnable", REFUSED_BY_PASS, error.message)
        except HloError as error:
            return Verdict(id, "different", reason=error.message, texts=(before, ""))
        after = print_module(module)
        if after == printed:
            return Verdict(id, "unchanged")
        return self.compare(id, before, after)

    def compare(self, id: str, before: str, after: str) -> Verdict:
        """Run both modules and compare their outputs."""
        try:
            found = self._equivalent(before, after)
            if found["reason"].startswith("second module: timeout"):  # a busy machine, or a loop?
                found = self._equivalent(before, after, patience=4)
            if found["equal"]:
                return Verdict(id, "equal")
            if self._only_rounds_differently(before, after):
                return Verdict(id, "equal")
            if _is_random(parse_module(before)):
                return Verdict(id, "not runnable", "stateful random numbers")
            if not self._equivalent(before, before)["equal"]:
                return Verdict(id, "not runnable", "differs from itself")
        except self._oracle.OracleError as error:
            return self._not_run(id, error)
        return Verdict(id, "different", reason=found["reason"], texts=(before, after))

    def _refused(self, id: str, before: str, error: HloVerifyError) -> Verdict:
        """A module our verifier refuses: does XLA, which does not verify here, run it?"""
        try:
            self._oracle.run(before, timeout=self._settings.timeout)
        except self._oracle.OracleError as refused:
            verdict = self._not_run(id, refused)
            return replace(verdict, kind="invalid", reason=error.message)
        return Verdict(id, "not runnable", REFUSED, error.message)

    def _not_run(self, id: str, error: Any) -> Verdict:
        if error.kind == "missing":
            raise ImportError(error.message)
        return Verdict(id, "not runnable", error.kind, error.message)

    def _equivalent(self, before: str, after: str, patience: int = 1) -> dict[str, Any]:
        options = {
            "seeds": self._settings.seeds,
            "timeout": self._settings.timeout * patience,
        }
        found: dict[str, Any] = self._oracle.equivalent(before, after, **options)
        return found

    def _only_rounds_differently(self, before: str, after: str) -> bool:
        """Whether all outputs are neighbouring numbers of their types.

        For f16 near zero the oracle is stricter than that: its tolerance is relative.
        """
        for seed in range(self._settings.seeds):
            options = {"seed": seed, "timeout": self._settings.timeout}
            try:
                sides = [self._oracle.run(text, **options) for text in (before, after)]
            except self._oracle.OracleError:
                return False
            flat = [[leaf for device in side for leaf in device] for side in sides]
            if len(flat[0]) != len(flat[1]) or not all(map(_are_neighbours, *flat)):
                return False
        return True


def _are_neighbours(a: NDArray[Any], b: NDArray[Any]) -> bool:
    """Whether two arrays are equal up to one unit in the last place of a 16-bit float."""
    import numpy as np

    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.name not in ("float16", "bfloat16"):
        return np.array_equal(a, b)
    # The bits of positive floats are ordered as the floats are; those of negative ones reversed.
    bits = [
        np.where(x < 0, -(x & 0x7FFF), x) for x in (v.view(np.int16).astype(int) for v in (a, b))
    ]
    return bool((np.abs(bits[0] - bits[1]) <= 1).all())


def _is_random(module: Module) -> bool:
    return any(instruction.opcode in _STATEFUL for instruction in module.instructions())


def sweep(entries: Sequence[CorpusEntry], settings: Settings, jobs: int) -> Iterator[Verdict]:
    """Judge all entries, in their order, in `jobs` processes.

    Raises PipelineError for wrong settings, ImportError without the oracle or without XLA.
    """
    # Found here, not by a child process:
    settings.steps()
    if settings.engine == "xla" and not (settings.oracle / "xla_oracle.py").is_file():
        raise ImportError(f"no xla_oracle.py in {settings.oracle}")
    with ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), _start_worker, (settings,)
    ) as pool:
        yield from pool.map(_check_in_worker, entries)


_checker: Checker | Validation


def _start_worker(settings: Settings) -> None:
    global _checker
    _checker = Checker(settings) if settings.engine == "xla" else Validation(settings)


def _check_in_worker(entry: CorpusEntry) -> Verdict:
    return _checker.check(entry.id, entry.text())


def main() -> int:
    """Sweep over the modules the command line names; the exit code."""
    arguments = _arguments()
    settings = Settings(
        oracle=(arguments.shared / "oracle").resolve(),
        pipeline=arguments.pipeline or (None if arguments.passes else "simplify"),
        passes=arguments.passes,
        seeds=arguments.seeds,
        timeout=arguments.timeout,
        engine=arguments.engine,
    )
    report = Report()
    try:
        entries = chosen_entries(arguments)
        for done, verdict in enumerate(sweep(entries, settings, arguments.jobs), 1):
            report.add(verdict)
            _show_progress(done, len(entries), last=verdict.id)
            if verdict.status == "different":
                _show_failure(verdict, arguments.save)
            elif verdict.kind == REFUSED or arguments.verbose:
                kind = f" ({verdict.kind})" if verdict.kind else ""
                print(f"{verdict.status}{kind} {verdict.id}: {_one_line(verdict.reason)}")
    except (HloError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(report.summary())
    return 1 if report.failures else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare what modules compute, before and after.")
    add_choice(parser)
    parser.add_argument("--engine", choices=("xla", "numpy"), default="xla", help="what runs them")
    parser.add_argument("--pipeline", help="name or file (default: simplify, or only --passes)")
    parser.add_argument("--passes", default="", help="passes to run, after those of --pipeline")
    parser.add_argument("--jobs", type=int, default=2, help="modules at a time")
    parser.add_argument("--seeds", type=int, default=2, help="inputs to run each module on")
    parser.add_argument("--timeout", type=float, default=60, help="seconds for one run")
    parser.add_argument("--save", type=Path, help="write the texts of modules that differ here")
    parser.add_argument("--verbose", action="store_true", help="a line for every module")
    return parser.parse_args()


def _show_progress(done: int, total: int, *, last: str) -> None:
    if sys.stderr.isatty():
        end = "\n" if done == total else ""
        print(f"\r\033[K{done}/{total} {last[:60]}", end=end, file=sys.stderr, flush=True)


def _one_line(text: str) -> str:
    return " ".join(text.split())[:200]


def _show_failure(verdict: Verdict, folder: Path | None) -> None:
    print(f"different {verdict.id}: {_one_line(verdict.reason)}", flush=True)
    if folder is None or verdict.texts is None:
        return
    folder.mkdir(parents=True, exist_ok=True)
    for side, text in zip(("before", "after"), verdict.texts, strict=True):
        if text:
            path = folder / f"{verdict.id.replace('/', '__')}.{side}.hlo"
            path.write_text(text, encoding="utf-8")
            print(f"  {path}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
