"""Modules to plant failures in: ours, and those of the shared corpus."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def ours(name: str) -> Callable[[], str]:
    """A file of testdata/."""
    return lambda: _read(_ROOT / "testdata" / name)


def benchmark(name: str) -> Callable[[], str]:
    """A benchmark of the shared corpus, read when it is asked for."""
    return lambda: _read(_shared() / "corpus" / "benchmarks" / name)


def random_program(name: str) -> Callable[[], str]:
    """A program that `tools/random_differential.py` once made, kept beside this file."""
    return lambda: _read(Path(__file__).with_name(name))


def _shared() -> Path:
    return Path(os.environ.get("HLOOPT_SHARED") or _ROOT.parent / "shared")


def _read(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
