#!/usr/bin/env python3
"""Run the corpus with our interpreter and on real XLA:CPU, and compare the outputs.

    tools/agreement.py --shared DIR [--filter RE] [--every N] [--seeds 3] [--cache DIR]

Takes every module XLA reads with at most 200 instructions and 10 million elements, on all the
devices it is for. Ends with `N agree, M differ, L not ours, K not runnable`: not ours are those XLA
runs and the interpreter does not; of both, those that known_differences.yaml explains are told
apart. Exits 1 if fewer than 98 % of what XLA runs agree or a difference is not explained, 2 for
wrong usage. Needs jaxlib, here or in the Python that $HLO_ORACLE_PYTHON names.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import pickle
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import yaml

from corpus import CorpusEntry, add_choice, chosen_entries
from hloopt.diagnostics import HloError
from hloopt.equivalence.agreement import first_difference
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.limits import Limits
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Value, arrays_of
from hloopt.ir import Module, Opcode
from hloopt.ir.device_counts import device_counts
from hloopt.ir.literal import ELIDED
from hloopt.text import parse_module

LEAST_AGREEING = 0.98
_MOST_ELEMENTS = 10_000_000
_MOST_STEPS = 5_000_000
_MOST_MEMORY = 4 << 30
_MOST_SECONDS = 60
_STATEFUL = frozenset((Opcode.RNG, Opcode.RNG_GET_AND_UPDATE_STATE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to run modules; picklable."""

    oracle: Path
    """The folder of xla_oracle.py."""
    seeds: int = 3
    """On how many inputs."""
    timeout: float = 60.0
    """Seconds for one run on XLA."""
    cache: Path | None = None
    """Where to keep what XLA answered, by module text and inputs."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of one module."""

    id: str
    status: str
    """"agree", "differ", "not ours" or "not runnable"."""
    reason: str = ""
    devices: int = 1
    ours: float = 0.0
    """Seconds the interpreter took for the first seed, parsing included."""
    xla: float = 0.0
    """Seconds XLA:CPU took for the first seed, parsing and compilation included; 0 if cached."""


class Answer(NamedTuple):
    """What XLA made of one input."""

    outputs: list[list[Any]]
    """The arrays of the result, by device."""
    seconds: float
    """Parsing and compilation included; 0 from the cache."""


class Judge:
    """Judges modules one by one; loads the oracle, which keeps XLA in child processes."""

    def __init__(self, settings: Settings) -> None:
        sys.path.insert(0, str(settings.oracle))
        import xla_oracle  # type: ignore[import-not-found, unused-ignore]  # beside the data

        self._oracle: Any = xla_oracle
        self._settings = settings

    def judge(self, id: str, text: str) -> Verdict:
        """Run a module on all seeds, up to the first that differs."""
        started = time.perf_counter()
        try:
            module = parse_module(text)
        except HloError as error:
            return Verdict(id, "not runnable", error.message)
        parsed = time.perf_counter() - started
        if _is_random(module):
            return Verdict(id, "not runnable", "stateful random numbers")
        if any(ELIDED in c.payload for c in module.instructions(Opcode.CONSTANT)):
            return Verdict(id, "not runnable", "constants were left out")
        if _elements(module) > _MOST_ELEMENTS:
            return Verdict(id, "not runnable", "too many elements")
        replicas, partitions = device_counts(module)
        devices = devices_of(replicas, partitions)
        seeds = range(self._settings.seeds)
        try:
            inputs = [
                [Inputs().arguments(module.entry, d, seed) for d in devices] for seed in seeds
            ]
            answers = [self._ask(text, arguments, replicas, partitions) for arguments in inputs]
        except self._oracle.OracleError as error:
            if error.kind == "missing":
                raise ImportError(error.message) from None
            return Verdict(id, "not runnable", f"{error.kind}: {error.message}")
        except HloError as error:
            return Verdict(id, "not runnable", error.message)
        ours, theirs, count = 0.0, answers[0].seconds, len(devices)
        for seed, arguments, answer in zip(seeds, inputs, answers, strict=True):
            started = time.perf_counter()
            limits = Limits(steps=_MOST_STEPS, memory=_MOST_MEMORY)
            signal.alarm(_MOST_SECONDS)
            try:
                found = run_module(
                    module, arguments, devices=devices, limits=limits, stand_ins=True
                )
            except HloError as error:
                return Verdict(id, "not ours", f"seed {seed}: {error.message}", count)
            except Exception as error:  # a bug of ours is a finding, not the end of the sweep
                return Verdict(id, "not ours", f"{type(error).__name__}: {error}", count)
            finally:
                signal.alarm(0)
            ours = ours or time.perf_counter() - started + parsed
            reason = _difference(found, answer.outputs)
            if reason:
                return Verdict(id, "differ", f"seed {seed}, {reason}", count, ours, theirs)
        return Verdict(id, "agree", "", count, ours, theirs)

    def _ask(
        self, text: str, arguments: list[list[Value]], replicas: int, partitions: int
    ) -> Answer:
        """What XLA makes of the arguments. Raises OracleError."""
        inputs = [list(arrays_of(tuple(values))) for values in arguments]
        path = None
        if self._settings.cache is not None:
            key = hashlib.sha256(pickle.dumps((text, replicas, partitions, inputs)))
            path = self._settings.cache / key.hexdigest()
            if path.exists():
                answer = pickle.loads(path.read_bytes())
                if isinstance(answer, tuple):
                    raise self._oracle.OracleError(*answer)
                return Answer(answer, 0.0)
        started = time.perf_counter()
        try:
            outputs = self._oracle.run(
                text,
                inputs=inputs,
                replicas=replicas,
                partitions=partitions,
                timeout=self._settings.timeout,
            )
        except self._oracle.OracleError as error:
            if path is not None:
                path.write_bytes(pickle.dumps((error.kind, error.message)))
            raise
        seconds = time.perf_counter() - started
        if path is not None:
            path.write_bytes(pickle.dumps(outputs))
        return Answer(outputs, seconds)


def known_differences() -> dict[str, str]:
    """Why modules differ or cannot be run by us, by id: what known_differences.yaml says."""
    path = Path(__file__).with_name("known_differences.yaml")
    reasons: dict[str, list[str]] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return {id: reason for reason, ids in reasons.items() for id in ids}


def _is_random(module: Module) -> bool:
    return any(instruction.opcode in _STATEFUL for instruction in module.instructions())


def _elements(module: Module) -> int:
    """The elements of all arrays of the module."""
    return sum(
        leaf.element_count()
        for instruction in module.instructions()
        for leaf in instruction.shape.leaves()
        if leaf.is_array
    )


def _difference(found: Sequence[Value], expected: Sequence[Sequence[Any]]) -> str:
    for device, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        flat = tuple(arrays_of(ours))
        if len(flat) != len(theirs):
            return f"device {device}: {len(flat)} outputs, XLA has {len(theirs)}"
        difference = first_difference(flat, tuple(theirs))
        if difference is not None:
            where = f"device {device}, output {difference.leaf[0]}{list(difference.index or ())}"
            return (
                f"{where}: {difference.left}, XLA has {difference.right} "
                f"({difference.count} of {difference.total} differ)"
            )
    return ""


_judge: Judge


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"takes more than {_MOST_SECONDS} s")


def _start_worker(settings: Settings) -> None:
    global _judge
    _judge = Judge(settings)
    signal.signal(signal.SIGALRM, _too_slow)


def _judge_in_worker(entry: CorpusEntry) -> Verdict:
    return _judge.judge(entry.id, entry.text())


def sweep(entries: Iterable[CorpusEntry], settings: Settings, jobs: int) -> Iterator[Verdict]:
    """Judge all entries, in their order, in `jobs` processes. Raises ImportError without XLA."""
    if not (settings.oracle / "xla_oracle.py").is_file():
        raise ImportError(f"no xla_oracle.py in {settings.oracle}")
    with ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), _start_worker, (settings,)
    ) as pool:
        yield from pool.map(_judge_in_worker, entries)


def main() -> int:
    """Sweep over the modules the command line names; the exit code."""
    arguments = _arguments()
    settings = Settings(
        oracle=(arguments.shared / "oracle").resolve(),
        seeds=arguments.seeds,
        timeout=arguments.timeout,
        cache=arguments.cache,
    )
    if arguments.cache:
        arguments.cache.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    devices: Counter[tuple[int, str]] = Counter()
    known = known_differences()
    explained: Counter[str] = Counter()
    try:
        entries = chosen_entries(arguments)
        for verdict in sweep(entries, settings, arguments.jobs):
            counts[verdict.status] += 1
            devices[verdict.devices, verdict.status] += 1
            if verdict.status in ("differ", "not ours") and verdict.id in known:
                explained[known[verdict.id]] += 1
                if not arguments.verbose:
                    continue
            if verdict.status in ("differ", "not ours") or arguments.verbose:
                times = f" ({verdict.ours:.4f} s, XLA {verdict.xla:.4f} s)" if verdict.ours else ""
                reason = " ".join(verdict.reason.split())[:300]
                print(f"{verdict.status} {verdict.id}{times}: {reason}", flush=True)
    except (HloError, OSError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for (count, status), number in sorted(devices.items()):
        if count > 1:
            print(f"{count} devices: {number} {status}")
    for reason, number in explained.most_common():
        print(f"{number} known: {reason}")
    statuses = ("agree", "differ", "not ours", "not runnable")
    print(", ".join(f"{counts[status]} {status}" for status in statuses))
    wrong = counts["differ"] + counts["not ours"]
    is_enough = counts["agree"] >= LEAST_AGREEING * (counts["agree"] + wrong)
    return 0 if is_enough and wrong == explained.total() else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare our interpreter with real XLA:CPU.")
    add_choice(parser)
    parser.add_argument("--jobs", type=int, default=2, help="modules at a time")
    parser.add_argument("--seeds", type=int, default=3, help="inputs to run each module on")
    parser.add_argument("--timeout", type=float, default=15, help="seconds for one run on XLA")
    parser.add_argument("--cache", type=Path, help="keep XLA's answers in this folder")
    parser.add_argument("--verbose", action="store_true", help="a line for every module")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
