"""The state of a sweep on disk: which inputs are done and what came of them."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hloopt
from sweep_lib.findings import Progress

_TOOLS = Path(__file__).resolve().parent.parent


class State:
    """Answers of slices, a line each, appended as they come: a killed sweep loses a slice or two.

    Answers of other sources, or of a sweep with other settings, are dropped.
    """

    def __init__(self, path: Path, settings: str) -> None:
        self.path = path
        self.total = Progress()
        self.kinds: Counter[str] = Counter()
        """Findings by kind."""
        self._done: list[range] = []
        header = {"settings": settings, "sources": sources_digest()}
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        if not lines or _parsed(lines[0]) != header:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(header) + "\n", encoding="utf-8")
            return
        for line in lines[1:]:
            answer = _parsed(line)
            if answer is not None:  # the last line may be cut off
                self._take(answer)
        if not path.read_bytes().endswith(b"\n"):
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def missing(self, count: int, longest: int) -> Iterator[range]:
        """The inputs below `count` that are not done, in slices of at most `longest`."""
        start = 0
        for done in sorted(self._done, key=lambda numbers: numbers.start):
            yield from _slices(start, min(done.start, count), longest)
            start = max(start, done.stop)
        yield from _slices(start, count, longest)

    def add(self, numbers: range, progress: Progress) -> None:
        """Keep the answer of a slice."""
        kinds = Counter(found.problem.kind for found in progress.findings)
        answer: dict[str, object] = {
            "first": numbers.start,
            "end": numbers.stop,
            "outcomes": dict(progress.outcomes),
            "findings": dict(kinds),
        }
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(answer) + "\n")
        self._take(answer)

    def _take(self, answer: dict[str, object]) -> None:
        first, end = answer["first"], answer["end"]
        outcomes, findings = answer["outcomes"], answer["findings"]
        assert isinstance(first, int)
        assert isinstance(end, int)
        assert isinstance(outcomes, dict)
        assert isinstance(findings, dict)
        self._done.append(range(first, end))
        self.total.add(Progress(end - first, Counter(outcomes)))
        self.kinds.update(findings)


def sources_digest() -> str:
    """A digest of all sources that decide what a sweep finds: ours, and those of the tools."""
    digest = hashlib.sha256()
    for folder in (Path(hloopt.__file__).parent, _TOOLS):
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".yaml"):
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _slices(start: int, end: int, longest: int) -> Iterator[range]:
    while start < end:
        stop = min(end, start // longest * longest + longest)
        yield range(start, stop)
        start = stop


def _parsed(line: str) -> dict[str, object] | None:
    try:
        answer = json.loads(line)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None
