"""A planted failure: the module that shows it, the smallest that does, and what is to blame."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

Kind = Literal["crash", "wrong result", "invalid module", "endless", "missed remark"]


class Culprit(NamedTuple):
    """The run of a pass, and the application in it, that bisecting has to name."""

    pass_name: str
    run: int = 1
    """The number of the run among those of the pass, from 1."""
    iteration: int | None = None
    """The round of the fixpoint that the run is in, from 1; None outside of fixpoints."""
    limit: int = 1
    """The least `--opt-limit` with which the failure shows; 0 where it shows with none at all, as
    each number of applications comes to an end."""
    instruction: str | None = None
    """The instruction of the application of that number; None where the run fails without one of
    its own: then `limit` is one more than the applications before the run."""


class PlantedFailure(NamedTuple):
    """A module, the passes that fail on it, and what reducing and bisecting have to find."""

    name: str
    kind: Kind
    passes: str
    """As `--passes` takes them."""
    text: Callable[[], str]
    """Gives the input. Raises FileNotFoundError where the shared test data are missing."""
    instructions: int
    """The number of instructions of the input, in all computations."""
    smallest: str
    """The smallest module that shows the failure with the same signature, written by hand."""
    signature: str
    """The failure without names, numbers and shapes, as `showing.Shown` has it."""
    culprit: Culprit
    two_computations: bool = False
    """Whether it takes three instructions or more, in two computations or more."""
    needs: Literal["", "loop", "collective", "alias"] = ""
    """A part of the module that it takes."""
    seconds: float = 2.0
    """The time of the processor after which an endless run counts as one."""
