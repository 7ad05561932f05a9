"""The verdict of comparing one module with XLA:CPU."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one module."""

    id: str
    status: str
    """"agree", "differ", "not ours" or "not runnable"."""
    reason: str = ""
    kind: str = ""
    """The kind of its difference, where that is recognized: see `recognition`."""
    devices: int = 1
    ours: float = 0.0
    """Seconds the interpreter took for the first seed, parsing included."""
    xla: float = 0.0
    """Seconds XLA:CPU took for the first seed, parsing and compilation included; 0 if cached."""
