"""Verdicts on disk, a line each: a sweep that was killed goes on where it was."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

from agreement_lib.verdict import Verdict
from sweep_lib.state import sources_digest


class Answers:
    """The verdicts of one file; those of other sources or settings are dropped."""

    def __init__(self, path: Path, settings: str) -> None:
        self.path = path
        self.verdicts: dict[str, Verdict] = {}
        header = json.dumps({"settings": settings, "sources": sources_digest()})
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        if not lines or lines[0] != header:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(header + "\n", encoding="utf-8")
            return
        whole = []
        for line in lines[1:]:
            try:
                verdict = Verdict(**json.loads(line))
            except ValueError:  # the last line may be cut off
                continue
            self.verdicts[verdict.id] = verdict
            whole.append(line)
        path.write_text("\n".join([header, *whole]) + "\n", encoding="utf-8")

    def add(self, verdict: Verdict) -> None:
        self.verdicts[verdict.id] = verdict
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(verdict)) + "\n")
