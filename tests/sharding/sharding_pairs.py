"""Small programs before the SPMD partitioner, and what XLA:CPU (jaxlib 0.10.2) made of them."""

from __future__ import annotations

from pathlib import Path

from hloopt.files import load
from hloopt.ir import Module

FOLDER = Path(__file__).parent / "pairs"
NAMES = sorted(path.name.split(".")[0] for path in FOLDER.glob("*.before.hlo"))


def paths_of(name: str) -> tuple[str, str]:
    """The files before and after the partitioner."""
    return str(FOLDER / f"{name}.before.hlo"), str(FOLDER / f"{name}.after.hlo")


def pair(name: str) -> tuple[Module, Module]:
    before, after = paths_of(name)
    return load(before), load(after)
