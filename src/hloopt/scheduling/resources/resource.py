"""Resources: what there is of each, and how instructions use them."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from hloopt.scheduling.config import SchedulerConfig


class Hazard(Enum):
    """The effect of several operations that want one resource."""

    UNSHAREABLE = auto()
    SHAREABLE = auto()
    """Operations in flight on it slow each other down."""
    SERIAL = auto()
    NONEXTENDABLE = auto()
    """The operation in flight on it should release it as soon as its latency is over."""
    SELECTIVE = auto()
    """Only valuable work should hide its latency."""


class Usage(Enum):
    """The effect of scheduling an instruction on a resource."""

    OCCUPY = auto()
    RELEASE = auto()
    NONE = auto()


class Resource(NamedTuple):
    """A resource, its name as XLA has it in messages."""

    name: str
    limit: int | None = None
    hazard: Hazard = Hazard.UNSHAREABLE
    option: str = ""
    """The option that `limit` is from."""

    @classmethod
    def of_option(
        cls, name: str, config: SchedulerConfig, option: str, hazard: Hazard = Hazard.UNSHAREABLE
    ) -> Resource:
        """A resource of which there is as much as an option says."""
        return cls(name, getattr(config, option), hazard, option)


Uses = tuple[tuple[int, Usage], ...]
"""Resources by number, each with what happens to it."""

Needs = tuple[tuple[int, int], ...]
"""Resources by number, each with how much of it is needed at once."""
