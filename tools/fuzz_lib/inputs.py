"""The numbered inputs of tools/fuzz.py: texts, protos, pipelines and command lines."""

from __future__ import annotations

import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeVar

from differential_lib.generate import program_text
from fuzz_lib import checks, commands, pipelines, protos
from fuzz_lib.mutations import Texts, break_text, mutated
from hloopt.diagnostics import HloError
from hloopt.text import parse_module
from hloopt.verifier import verify_module
from sweep_lib.findings import Finding, Problem, Progress
from sweep_lib.limits import Limits
from sweep_lib.reduction import reduced

KINDS = ("text", "proto", "pipeline", "command")
_SHARES = (0.45, 0.2, 0.1, 0.25)
_APART = 1 / 150
"""The share of command lines that get a process of their own."""

_OUR_OWN = 0.25
"""The share of texts from the generator of random_differential.py."""
_BYTES_A_SECOND = 5 << 20
"""Size of an input that is given a second more: some constants of the corpus have 70 MB."""

Outcome = tuple[str, Problem | None]
_Result = TypeVar("_Result")


class Inputs(NamedTuple):
    """Inputs of the fuzzer and their limits, for a sweep. Picklable."""

    folders: tuple[Path, ...]
    seed: int
    thorough: float = 0.25
    """The share of texts that go through all passes."""
    kinds: tuple[str, ...] = KINDS
    seconds: float = 5.0
    """Processor time for a small input; four times as much for commands and pipelines."""
    megabytes: int = 500
    """The most bytes that one input may add to a worker's memory."""
    reduction_seconds: float = 20.0

    @property
    def patience(self) -> float:
        return 12 * self.seconds + 4 * self.reduction_seconds

    def start(self) -> None:
        """Raises OSError where there are no texts to start from."""
        _texts(self.folders)

    def content(self, number: int) -> bytes:
        return _Case(self, number).content

    def examine(self, number: int, known: set[str]) -> Progress:
        case = _Case(self, number)
        seconds = self.seconds * (1 if case.kind in ("text", "proto") else 4)
        limits = Limits(seconds + len(case.content) / _BYTES_A_SECOND, self.megabytes)
        with limits:
            outcome, problem = case.check(case.text)
        progress = Progress(1, Counter({f"{case.kind} {outcome}": 1}) + case.notes)
        if problem is None:
            return progress
        content = case.content
        if problem.kind not in known and case.may_shrink:
            known.add(problem.kind)

            def still_fails(candidate: str) -> bool:
                with limits:
                    found = case.check(candidate)[1]
                return found is not None and found.kind == problem.kind

            content = case.file(reduced(case.text, still_fails, self.reduction_seconds))
        progress.findings.append(Finding(number, problem, content, case.suffix))
        return progress


@lru_cache(maxsize=1)
def _texts(folders: tuple[Path, ...]) -> Texts:
    return Texts(folders)


class _Case:
    """One input: its text, what is checked of it, and how it is written to a file."""

    def __init__(self, inputs: Inputs, number: int) -> None:
        self.inputs = inputs
        self.dice = random.Random(f"{inputs.seed}:{number}:case")
        shares = [_SHARES[KINDS.index(kind)] for kind in inputs.kinds]
        self.kind = self.dice.choices(inputs.kinds, shares)[0]
        self.notes: Counter[str] = Counter()
        self.suffix = ".hlo"
        self.may_shrink = True
        self.text = ""
        self.check: Callable[[str], Outcome]
        self._about = b""
        texts = _texts(inputs.folders)
        getattr(self, f"_make_{self.kind}")(texts, number)

    @property
    def content(self) -> bytes:
        return self.file(self.text)

    def file(self, text: str) -> bytes:
        """A file that holds the input, with `text` as its main part."""
        if self.kind == "proto":
            return self._about
        return text.encode("utf-8", "surrogatepass") + self._about

    def _make_text(self, texts: Texts, number: int) -> None:
        self.text = mutated(texts, self.inputs.seed, number)
        if self.dice.random() < _OUR_OWN:
            self.text = _own_program(self.dice)
            if self.dice.random() < 0.8:
                self.text = break_text(self.dice, self.text)
        thorough = self.dice.random() < self.inputs.thorough
        self.check = lambda text: checks.check(text, thorough=thorough)

    def _make_proto(self, texts: Texts, number: int) -> None:
        data = protos.broken_proto(self.dice, texts.choose(self.dice))
        self.suffix, self.may_shrink, self._about = ".pb", False, data
        self.check = lambda _: protos.check_proto(data) if data else ("without a module", None)

    def _make_pipeline(self, texts: Texts, number: int) -> None:
        own = self.dice.random() < 0.5
        module = _own_program(self.dice) if own else _valid_text(texts, self.dice)
        self.text = pipelines.broken_pipeline(self.dice)
        self.suffix = ".yaml"
        self._about = f"\n# on the module\n# {json.dumps(module)}\n".encode()
        self.check = lambda text: pipelines.check_pipeline(text, module)

    def _make_command(self, texts: Texts, number: int) -> None:
        """The input is a file of the command; a second one is another text, or a version of it."""
        is_proto = self.dice.random() < 0.1
        self.text = mutated(texts, self.inputs.seed, number)
        if self.dice.random() < 0.65:
            own = self.dice.random() < _OUR_OWN
            self.text = _own_program(self.dice) if own else _valid_text(texts, self.dice)
        data = protos.broken_proto(self.dice, self.text) if is_proto else b""
        other = self.text if self.dice.random() < 0.5 else texts.choose(self.dice)
        apart = self.dice.random() < _APART
        state = self.dice.getstate()
        shown = _with_files(self.dice, self.text, other, data, lambda arguments: arguments)
        self._about = f"\n// hloopt {' '.join(shown)}\n".encode()
        self.notes[f"ran {_name_of(shown)}"] += 1
        self.may_shrink = not data and not apart

        def check(text: str) -> Outcome:
            dice = random.Random()
            dice.setstate(state)
            return _with_files(
                dice, text, other, data, lambda found: commands.check_command(found, apart=apart)
            )

        self.check = check


def _name_of(arguments: list[str]) -> str:
    words = 2 if arguments[0] == "analyze" else 1
    return " ".join(arguments[:words])


def _with_files(
    dice: random.Random, text: str, other: str, data: bytes, use: Callable[[list[str]], _Result]
) -> _Result:
    """Use a command line whose files are there meanwhile."""
    with tempfile.TemporaryDirectory(prefix="hloopt-fuzz-") as folder:
        files = [f"{folder}/a.hlo", f"{folder}/b.hlo"]
        Path(files[0]).write_bytes(text.encode("utf-8", "surrogatepass"))
        Path(files[1]).write_bytes(other.encode("utf-8", "surrogatepass"))
        if data:
            files = [f"{folder}/a.pb"]
            Path(files[0]).write_bytes(data)
        return use(commands.command_line(dice, files, folder))


def _own_program(dice: random.Random) -> str:
    return program_text(dice.randrange(1 << 30), 0)


def _valid_text(texts: Texts, dice: random.Random) -> str:
    """A text as it is, of a valid module."""
    while True:
        text = texts.choose(dice)
        try:
            if len(text) < 20_000 and not verify_module(parse_module(text)):
                return text
        except HloError:
            continue
