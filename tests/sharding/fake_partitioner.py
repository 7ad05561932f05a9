"""A partitioner that partitions nothing: its results are known beforehand."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path

import pytest
from tests.sharding.sharding_pairs import paths_of

from hloopt.compilers import partitioning
from hloopt.ir import Module
from hloopt.text import parse_module


def install(monkeypatch: pytest.MonkeyPatch, *texts: str) -> list[Module]:
    """Let `sharding what-if` have these results in turn, or else those of two small programs.

    The list gets the programs that are to be partitioned.
    """
    given: list[Module] = []
    results = cycle(texts or (_after("gathered"), _after("summed")))

    def partition(program: Module, folder: Path) -> Module:
        given.append(program)
        return parse_module(next(results))

    monkeypatch.setattr(partitioning, "partition", partition)
    return given


def _after(name: str) -> str:
    return Path(paths_of(name)[1]).read_text(encoding="utf-8")
