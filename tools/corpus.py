"""The shared corpus of HLO modules, as its index lists them."""

from __future__ import annotations

import json
import re
from argparse import ArgumentParser, Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class CorpusEntry:
    """One module; `facts` is its line of index.jsonl. Picklable."""

    id: str
    verdict: str
    """XLA's verdict: "ok" or "error"."""
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


def choose_entries(
    shared: Path, *, max_instructions: int, every: int, pattern: str
) -> list[CorpusEntry]:
    """Modules XLA reads with at most `max_instructions`; of those every `every`-th.

    `pattern` is a regular expression to be found in the id or the text.
    """
    wanted = re.compile(pattern)
    chosen = [
        entry
        for entry in read_corpus(shared / "corpus")
        if entry.verdict == "ok"
        and entry.facts["instructions"] <= max_instructions
        and (wanted.search(entry.id) or wanted.search(entry.text()))
    ]
    return chosen[::every]


def add_choice(parser: ArgumentParser) -> None:
    """The command-line options for `choose_entries`, by its argument names."""
    parser.add_argument("--shared", type=Path, required=True, help="the folder of corpus/, oracle/")
    parser.add_argument("--max-instructions", type=int, default=200, help="no larger modules")
    parser.add_argument("--every", type=int, default=1, help="only every N-th module")
    parser.add_argument("--filter", default="", help="only with this pattern in id or text")


def chosen_entries(arguments: Namespace) -> list[CorpusEntry]:
    """The modules that the options of `add_choice` name."""
    return choose_entries(
        arguments.shared,
        max_instructions=arguments.max_instructions,
        every=arguments.every,
        pattern=arguments.filter,
    )
