"""The texts that XLA:GPU's passes made: asked once, then kept on disk."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from hloopt.diagnostics import HloError
from oracle_script import oracle_script
from pass_agreement_lib.chain import PassRun, runs_of

_SECONDS = 300.0
"""For the compiler, on one block of texts; those that are left get as long again."""
_BETWEEN_PASSES = re.compile(r"module_\d+\..*\.after_.*\.before_.*\.txt$")
_LONGEST_ERROR = 400  # characters


class Answer(NamedTuple):
    """The runs of XLA's passes on one text."""

    runs: list[PassRun]
    error: str
    """The compiler's message where it failed, perhaps behind some passes; else empty."""


class Answers:
    """Answers of XLA:GPU's compiler, kept in a folder: a file for each text, by its content.

    They depend on the compiler and the target alone, not on our sources.
    """

    def __init__(self, folder: Path, shared: Path, python: str, target: str) -> None:
        self._folder = folder / target
        self._xla = oracle_script(shared / "oracle", "xla_gpu")
        self._python = python
        self._target = target

    def of(self, texts: Sequence[str]) -> list[Answer]:
        """The answers for texts; the compiler is asked for those that are missing, in one process.

        0.5 s for a small text. Raises HloError where the compiler is not installed.
        """
        missing = list(dict.fromkeys(t for t in texts if not self._file(t).is_file()))
        if missing:
            self._folder.mkdir(parents=True, exist_ok=True)
            for text, answer in zip(missing, self._ask(missing), strict=True):
                _write(self._file(text), answer)
        return [_read(self._file(text)) for text in texts]

    def _file(self, text: str) -> Path:
        digest = hashlib.sha256(text.encode()).hexdigest()[:24]
        return self._folder / f"{digest}.json.gz"

    def _ask(self, texts: Sequence[str]) -> list[Answer]:
        folder = Path(tempfile.mkdtemp(prefix="pass-agreement-"))
        try:
            results = self._xla.compile_many(
                list(texts), target=self._target, passes=".*", until="end", timeout=_SECONDS,
                python=self._python, keep=folder,
            )  # fmt: skip
            return [_answer(*pair) for pair in zip(results, _dump_folders(folder), strict=True)]
        except self._xla.PackagesMissing as error:
            raise HloError(f"{self._python} has no XLA:GPU: {error}") from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _dump_folders(folder: Path) -> Iterator[Path]:
    """The folders of the dumps of each text, in order.

    The script starts the compiler again when it dies, with another folder, and moves the dumps of a
    text away when the next one begins.
    """
    for process in sorted(folder.glob("r*"), key=lambda each: int(each.name[1:])):
        dumps = process / "dump"
        yield from sorted(dumps.glob("m[0-9]*/"), key=lambda each: int(each.name[1:]))
        yield dumps


def _answer(result: Any, folder: Path) -> Answer:
    texts = {
        path.name: path.read_text(encoding="utf-8")
        for path in folder.iterdir()
        if _BETWEEN_PASSES.match(path.name)
    }
    try:
        return Answer(runs_of(result.log.splitlines(), texts), str(result.error)[:_LONGEST_ERROR])
    except HloError as error:
        return Answer([], error.message)


def _write(path: Path, answer: Answer) -> None:
    texts: dict[str, int] = {}
    runs = [
        (run.pipeline, run.name, *(texts.setdefault(text, len(texts)) for text in run[2:]))
        for run in answer.runs
    ]
    content = json.dumps({"error": answer.error, "texts": list(texts), "runs": runs})
    whole = path.with_suffix(f".{os.getpid()}")
    whole.write_bytes(gzip.compress(content.encode(), 6))
    whole.replace(path)


def _read(path: Path) -> Answer:
    content = json.loads(gzip.decompress(path.read_bytes()))
    texts = content["texts"]
    runs = [
        PassRun(pipeline, name, texts[before], texts[after])
        for pipeline, name, before, after in content["runs"]
    ]
    return Answer(runs, content["error"])
