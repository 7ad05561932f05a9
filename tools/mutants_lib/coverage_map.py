"""The tests that run a line: recorded once, renewed for what changed."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from mutants_lib.operators import Mutant
from mutants_lib.trees import Trees

SELECTION = ["-m", "not slow and not oracle"]
"""Options of pytest for the tests that `make test` runs."""
_FILES_AT_ONCE = 16
_LONGEST = 1800.0  # seconds for the tests of so many files


class RecordedTest(NamedTuple):
    """A test that passes, and what it runs."""

    name: str
    """Its pytest node."""
    seconds: float
    lines: dict[str, int]
    """For each source file a bit for each line."""

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


class CoverageMap:
    """The lines that each test of some test files runs."""

    def __init__(self, tests: Iterable[RecordedTest], digest: str) -> None:
        self.digest = digest
        """The digest of the sources and tests that were recorded."""
        self._by_file: dict[str, list[RecordedTest]] = {}
        """The tests that run anything of a source file."""
        for test in tests:
            for file in test.lines:
                self._by_file.setdefault(file, []).append(test)

    def tests_of(self, mutant: Mutant) -> list[RecordedTest]:
        """The tests that run what a mutant changes.

        The tracer does not see each line of a long statement: then those of its first line.
        """
        tests = self._by_file.get(mutant.file, [])
        if not mutant.statement:
            return tests
        for line in (mutant.line, mutant.statement):
            if found := [test for test in tests if test.lines[mutant.file] >> line & 1]:
                return found
        return []


def record(
    trees: Trees, files: Sequence[str], folder: Path, log: Callable[[str], None]
) -> CoverageMap:
    """Run the tests of `files` that `folder` has no answers for, and read the answers.

    Answers are for the sources, the test file, and what test files share, as they are; others are
    deleted. Raises RuntimeError where pytest cannot run the tests.
    """
    root = trees.root
    common = digest_of(
        path
        for top in ("src", "tests", "pipelines", "testdata")
        for path in sorted((root / top).rglob("*"))
        if path.is_file() and path.suffix != ".pyc" and not (top == "tests" and is_test(path))
    )
    for stale in set(folder.glob("*")) - {folder / common}:
        shutil.rmtree(stale)
    (folder / common).mkdir(parents=True, exist_ok=True)
    digests = {file: digest_of([root / file]) for file in files}
    answers = {
        file: folder / common / f"{file.replace('/', '.')}-{digest}.json"
        for file, digest in digests.items()
    }
    missing = [file for file, answer in answers.items() if not answer.is_file()]
    chunks = [missing[i : i + _FILES_AT_ONCE] for i in range(0, len(missing), _FILES_AT_ONCE)]
    if missing:
        log(f"recording what the tests of {len(missing)} files run")
    with ThreadPoolExecutor(trees.count) as pool:
        for tests in pool.map(lambda chunk: _record_chunk(trees, chunk, answers), chunks):
            log(f"recorded {tests} tests")
    together = hashlib.sha256("".join([common, *digests.values()]).encode()).hexdigest()[:16]
    return CoverageMap((test for path in answers.values() for test in _read(path)), together)


def is_test(path: Path) -> bool:
    """Whether pytest collects tests of a file below tests/: a module, or HLO with RUN lines."""
    if path.suffix == ".py":
        return path.name.startswith("test_")
    return path.suffix == ".hlo" and path.parent.name != "inputs"


def digest_of(paths: Iterable[Path]) -> str:
    """A digest of names and contents."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _record_chunk(trees: Trees, files: Sequence[str], answers: Mapping[str, Path]) -> int:
    """Run test files, write an answer for each; the number of tests that pass."""
    with trees.one() as tree:
        written = tree.folder / "lines.json"
        written.unlink(missing_ok=True)
        options = ["-p", "mutants_lib.recorder", "--record-lines", str(written)]
        options += ["--record-below", "src/hloopt", *SELECTION, "-q", "--tb=no"]
        code, output = tree.pytest([*options, *files], _LONGEST)
        if not written.is_file():
            raise RuntimeError(f"pytest cannot run {' '.join(files)} (exit code {code}):\n{output}")
        tests = json.loads(written.read_text(encoding="utf-8"))
    by_file: dict[str, dict[str, object]] = {file: {} for file in files}
    for name, test in tests.items():
        by_file[name.partition("::")[0]][name] = test
    for file, found in by_file.items():
        answers[file].write_text(json.dumps(found), encoding="utf-8")
    return len(tests)


def _read(path: Path) -> list[RecordedTest]:
    tests = json.loads(path.read_text(encoding="utf-8"))
    return [
        RecordedTest(
            name, test["seconds"], {file: int(bits, 16) for file, bits in test["lines"].items()}
        )
        for name, test in tests.items()
    ]
