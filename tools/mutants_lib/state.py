"""The answers on disk: the verdict on each mutant, a line each, appended as they come."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from mutants_lib.operators import Mutant
from mutants_lib.trial import SURVIVED, Verdict


class State:
    """Verdicts on mutants of files as they are now.

    A mutant that was killed stays killed as long as its file is the same. One that survived is
    tried again when any source or test has changed, which `digest` tells.
    """

    def __init__(self, path: Path, digest: str) -> None:
        self._path = path
        self._digest = digest
        self._answers: dict[str, dict[str, object]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        for line in text.splitlines():
            try:
                answer = json.loads(line)
            except ValueError:
                continue  # cut off when the run was killed
            self._answers[answer["mutant"]] = answer
        if text and not text.endswith("\n"):
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")

    def get(self, mutant: Mutant, source: bytes) -> Verdict | None:
        """The verdict on a mutant of `source`, where it still holds."""
        answer = self._answers.get(_key(mutant, source))
        if answer is None:
            return None
        verdict = Verdict(*answer["verdict"])  # type: ignore[misc]  # as it was written
        return None if verdict.outcome == SURVIVED and answer["digest"] != self._digest else verdict

    def add(self, mutant: Mutant, source: bytes, verdict: Verdict) -> None:
        """Keep a verdict."""
        answer: dict[str, object] = {
            "mutant": _key(mutant, source),
            "where": f"{mutant.file}:{mutant.line}",
            "change": mutant.change(source),
            "verdict": verdict,
            "digest": self._digest,
        }
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(answer) + "\n")
        self._answers[_key(mutant, source)] = answer


def _key(mutant: Mutant, source: bytes) -> str:
    text = f"{mutant.file} {mutant.start} {mutant.end} {mutant.replacement} "
    return hashlib.sha256(text.encode() + source).hexdigest()[:24]
