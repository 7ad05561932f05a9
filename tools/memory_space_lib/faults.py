"""Faults of an assignment."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Kind(StrEnum):
    """A law that a result breaks."""

    ORDER = "order"
    """An instruction runs before what it needs."""
    OVERLAP = "overlap"
    """Two values that are needed have a byte in common."""
    OVERWRITTEN = "overwritten"
    """A value is replaced in its place while something still needs it."""
    SIZE = "size"
    """A chunk goes beyond alternate memory, or is smaller than what lies in it."""
    ALIGNMENT = "alignment"
    """A chunk does not start at a multiple of the alignment."""
    COLOR = "color"
    """Positions of one place are in different memory spaces."""
    CHUNK = "chunk"
    """A place in alternate memory has no chunk, or several; or a chunk is of something else."""
    REQUIRED = "required"
    """Something is not in the memory space that its layout asks for."""
    EARLY = "early"
    """Something reads a copy that may still run."""
    OUTSTANDING = "outstanding"
    """More copies run at one time than may."""
    CRASH = "crash"
    """The pass ends with an exception that is no refusal."""
    INVALID = "invalid"
    """The verifier refuses the module."""
    DIFFERENT = "different"
    """The module computes something else."""
    UNSTABLE = "unstable"
    """Two runs make two modules."""


class Fault(NamedTuple):
    """A broken law and the place where."""

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"
