"""The shared corpus of HLO modules, as its index lists them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class CorpusEntry:
    """One module; `facts` is its line of index.jsonl. Picklable."""

    id: str
    verdict: str
    """What XLA says to it: "ok" or "error"."""
    path: Path
    facts: dict[str, Any]

    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")


def read_corpus(corpus: Path) -> list[CorpusEntry]:
    """All modules of the folder `corpus`, in the order of its index."""
    index = (corpus / "index.jsonl").read_text(encoding="utf-8")
    records = [json.loads(line) for line in index.splitlines()]
    return [
        CorpusEntry(record["id"], record["verdict"], corpus / record["module"], record)
        for record in records
    ]
