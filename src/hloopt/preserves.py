"""The agreement of results that a pass declares, or that two programs must have."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

Preserves: TypeAlias = Literal["bits", "rounding", "finite", "precision"]
"""`bits`: all results, whatever the inputs. `rounding`: floats up to how they are rounded.
`finite`: the same, where nothing is NaN, infinite, -0, an extreme of its type or an index out of
range. `precision`: the same as `finite`, but that roundings to the narrowest float type on the way
to an output may be at other places, more or fewer."""
PRESERVES: tuple[Preserves, ...] = get_args(Preserves)
"""The most first."""
EXPLAINED: dict[Preserves, str] = {
    "bits": "every bit of the results",
    "rounding": "results up to rounding",
    "finite": "results up to rounding, on inputs without special values",
    "precision": "results up to roundings to the narrowest float type on their way",
}
