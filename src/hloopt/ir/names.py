"""Unique names, given out as XLA does."""

from __future__ import annotations

from collections.abc import Collection

from hloopt.patterns import pattern

_SUFFIX = pattern(r"(.+)\.(0|[1-9]\d*)")


class NameTable:
    """The names in use in one module; names once used are never given out again.

    A name is a base and a numeric suffix: `dot.3`; a bare `dot` counts as suffix 0.
    """

    __slots__ = ("_next", "_noted", "_zero_bases", "used")

    def __init__(self) -> None:
        self.used: set[str] = set()
        self._next: dict[str, int] = {}
        self._noted = 0
        self._zero_bases: set[str] = set()  # of used names that end in ".0"

    def note(self, names: Collection[str], joined: str) -> None:
        """Mark freshly read names as used, whether they clash or not; see `has_clash`.

        The bulk form of `unique`, a few set operations. `joined` holds the same names with blanks
        between them.
        """
        self.used.update(names)
        self._noted += len(names)
        if ".0 " in joined or joined.endswith(".0"):
            self._zero_bases.update(name[:-2] for name in names if name.endswith(".0"))

    @property
    def has_clash(self) -> bool:
        """Whether two of the names that were noted are the same, or `x` and `x.0`."""
        return len(self.used) != self._noted or not self.used.isdisjoint(self._zero_bases)

    def unique(self, name: str) -> str:
        """`name` if it is free, else its base with the lowest free suffix; marks it as used.

        O(1) amortized over the names of one base.
        """
        if not self._taken(name):
            self._mark(name)
            return name
        match = _SUFFIX.fullmatch(name)
        base = match[1] if match else name
        suffix = self._next.get(base, 0)
        while self._taken(f"{base}.{suffix}"):
            suffix += 1
        self._next[base] = suffix + 1
        result = f"{base}.{suffix}"
        self._mark(result)
        return result

    def _taken(self, name: str) -> bool:
        return (
            name in self.used
            or name in self._zero_bases
            or (name.endswith(".0") and name[:-2] in self.used)
        )

    def _mark(self, name: str) -> None:
        self.used.add(name)
        if name.endswith(".0"):
            self._zero_bases.add(name[:-2])

    def copy(self) -> NameTable:
        table = NameTable()
        table.used = set(self.used)
        table._next = dict(self._next)
        table._noted = self._noted
        table._zero_bases = set(self._zero_bases)
        return table
