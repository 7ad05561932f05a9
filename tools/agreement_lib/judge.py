"""Judges modules one by one: our interpreter beside XLA:CPU, on the same inputs."""

from __future__ import annotations

import hashlib
import pickle
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from agreement_lib.recognition import Difference, Rerun, reason_of_difference, reason_of_failure
from agreement_lib.verdict import Verdict
from hloopt.diagnostics import HloError
from hloopt.equivalence.agreement import first_difference
from hloopt.interpreter.inputs import Inputs
from hloopt.interpreter.limits import Limits
from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Value, arrays_of
from hloopt.ir import Module, Opcode
from hloopt.ir.devices.device_counts import device_counts
from hloopt.ir.literals.literal import ELIDED
from hloopt.text import parse_module
from oracle_script import oracle_script

_MOST_ELEMENTS = 10_000_000
_MOST_STEPS = 5_000_000
_MOST_MEMORY = 4 << 30
_MOST_SECONDS = 60
_STATEFUL = frozenset((Opcode.RNG, Opcode.RNG_GET_AND_UPDATE_STATE))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings for running modules; picklable."""

    oracle: Path
    """The folder of xla_oracle.py."""
    seeds: int = 3
    """On how many inputs."""
    timeout: float = 60.0
    """Seconds for one run on XLA."""
    cache: Path | None = None
    """The folder of answers of XLA, by module text and inputs."""


class Answer(NamedTuple):
    """The answer of XLA for one input."""

    outputs: list[list[Any]]
    """The arrays of the result, by device."""
    seconds: float
    """Parsing and compilation included; 0 from the cache."""


class Judge:
    """Judges modules one by one; loads the oracle, which keeps XLA in child processes."""

    def __init__(self, settings: Settings) -> None:
        self._oracle = oracle_script(settings.oracle, "xla_oracle")
        self._settings = settings
        signal.signal(signal.SIGALRM, _too_slow)

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
            except (HloError, TimeoutError) as error:
                failure: HloError | TimeoutError | None = error
            except Exception as error:  # a bug of ours is a finding, not the end of the sweep
                return Verdict(id, "not ours", f"{type(error).__name__}: {error}", "", count)
            else:
                failure = None
            finally:
                signal.alarm(0)
            if failure is not None:
                said = failure.message if isinstance(failure, HloError) else str(failure)
                is_limit = isinstance(failure, TimeoutError) or failure.code == "HLO503"
                kind = reason_of_failure(module, is_limit=is_limit)
                return Verdict(id, "not ours", f"seed {seed}: {said}", kind, count)
            ours = ours or time.perf_counter() - started + parsed
            reason, difference = _difference(found, answer.outputs)
            if reason:
                kind = ""
                if difference is not None:
                    rerun = Rerun(module, arguments, devices, _MOST_STEPS, _MOST_MEMORY)
                    kind = reason_of_difference(rerun, difference)
                return Verdict(id, "differ", f"seed {seed}, {reason}", kind, count, ours, theirs)
        return Verdict(id, "agree", "", "", count, ours, theirs)

    def _ask(
        self, text: str, arguments: list[list[Value]], replicas: int, partitions: int
    ) -> Answer:
        """Run XLA on the arguments. Raises OracleError."""
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


def _difference(
    found: Sequence[Value], expected: Sequence[Sequence[Any]]
) -> tuple[str, Difference | None]:
    """The first output that differs, in words and as arrays; an empty text where none does."""
    for device, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        flat = tuple(arrays_of(ours))
        if len(flat) != len(theirs):
            return f"device {device}: {len(flat)} outputs, XLA has {len(theirs)}", None
        difference = first_difference(flat, tuple(theirs))
        if difference is not None:
            output = difference.leaf[0]
            said = (
                f"device {device}, output {output}{list(difference.index or ())}: "
                f"{difference.left}, XLA has {difference.right} "
                f"({difference.count} of {difference.total} differ)"
            )
            return said, Difference(device, output, flat[output], theirs[output])
    return "", None


def _too_slow(number: int, frame: FrameType | None) -> None:
    raise TimeoutError(f"takes more than {_MOST_SECONDS} s")
