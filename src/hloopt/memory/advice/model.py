"""Advice on lowering a module's memory, as data. All sizes are bytes of one device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hloopt.memory.allocations import AllocationKind, ParameterPart


@dataclass(frozen=True, slots=True)
class Suggested:
    """A buffer that something is suggested for."""

    name: str
    computation: str
    shape: str
    size: int
    kind: AllocationKind
    op_name: str


@dataclass(frozen=True, slots=True)
class Donation:
    """An argument whose memory an output can take over."""

    argument: ParameterPart
    name: str
    """The parameter, with its op_name where it has one."""
    output: tuple[int, ...]
    """The shape index of the result."""
    shape: str
    size: int
    saved: int | None
    """Bytes saved with this donation alone; None where only all together were tried."""


@dataclass(frozen=True, slots=True)
class Rematerialization:
    """A buffer to be computed a second time instead of being kept."""

    buffer: Suggested
    idle: tuple[int, int]
    """Positions of the last use before it is dropped, and of the use that needs it again."""
    flops: int
    """Added by one run of the module."""
    seconds: float | None
    """The least time these runs take on the target; None without one."""
    is_later: bool
    """Whether nothing reads it before: it only has to be computed later, which adds nothing."""


@dataclass(frozen=True, slots=True)
class Offload:
    """A buffer to be kept in host memory while nothing touches it."""

    buffer: Suggested
    idle: tuple[int, int]
    """-1, or the number of positions: before the program starts, or until it ends."""
    moved: int
    """Bytes over the link: out, back, or both."""
    transfer_seconds: float | None
    """None without a target, or for one without such a link."""
    idle_seconds: float | None
    """The least time of what runs meanwhile; None without a target."""


@dataclass(frozen=True, slots=True)
class Sharding:
    """A buffer at the peak that is the same on all devices."""

    buffer: Suggested
    saved: int
    """At most: one device of `devices` keeps that much less."""
    devices: int


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why buffers that wait at the peak cannot be computed again."""

    reason: str
    count: int
    size: int
    """Bytes of all of them."""


@dataclass(frozen=True, slots=True)
class Effect:
    """Sizes before and after."""

    before: int
    after: int

    @property
    def saved(self) -> int:
        return self.before - self.after


NO_EFFECT = Effect(0, 0)


@dataclass(slots=True)
class Advice:
    """The advice, each kind on its own: the effects do not add up."""

    target: str | None
    """The title of the device that times are of; None: there are no times."""
    donations: Sequence[Donation] = ()
    donated_need: Effect = NO_EFFECT
    """Bytes needed by the assignment made again with all donations."""
    donated_peak: Effect = NO_EFFECT
    rematerializations: Sequence[Rematerialization] = ()
    rematerialized_peak: Effect = NO_EFFECT
    """Counted again from lifetimes. Packing may need more."""
    obstacles: Sequence[Obstacle] = ()
    """The reasons against rematerializing other buffers that wait at the peak."""
    offloads: Sequence[Offload] = ()
    offloaded_peak: Effect = NO_EFFECT
    """Likewise."""
    shardings: Sequence[Sharding] = ()
    sharded_bound: int = 0
    """No more than that is saved at the peak by all shardings."""
