"""Roles of an entry's arrays (indices, counters, divisors, …), which decide on made-up values."""

from __future__ import annotations

from typing import NamedTuple


class Role(NamedTuple):
    """The uses of one array of a parameter."""

    fan_in: int = 1
    """The number of products of its elements that are summed up in dots and convolutions, at the
    most."""
    is_positive: bool = False
    """Whether it ends up under a square root or a logarithm."""
    bound: int = 0
    """Elements along the dimension that it is an index into, at the least; 0: into none."""
    branches: int = 0
    """Branches of the conditional that it selects one of; 0: of none."""
    steers: bool = False
    """Whether trip counts, branches, indices or sizes depend on it."""
    is_measured: bool = False
    """Whether integers become floats."""
    takes_any: bool = False
    """Whether nothing but integers comes of integers, however large."""

    def merged(self, other: Role) -> Role:
        """The uses of both."""
        if self == other:
            return self
        return Role(
            max(self.fan_in, other.fan_in),
            self.is_positive or other.is_positive,
            min(filter(None, (self.bound, other.bound)), default=0),
            max(self.branches, other.branches),
            self.steers or other.steers,
            self.is_measured or other.is_measured,
            self.takes_any and other.takes_any,
        )


NO_ROLE = Role()
