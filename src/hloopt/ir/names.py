"""Unique names, given out as XLA does."""

from __future__ import annotations

from collections.abc import Collection

from hloopt.patterns import pattern

_SUFFIX = pattern(r"(.+)\.(0|[1-9]\d*)")
_PADDED = pattern(r"(.+)\.(0\d{1,17})")
_ANY_PADDED = pattern(r"\.0\d{1,17}(?= |$)")


class NameTable:
    """The names in use in one module; names once used are never given out again.

    A name is a base and a numeric suffix: `dot.3`; a bare `dot` counts as suffix 0, and `dot.03` is
    written `dot.3`.
    """

    __slots__ = ("_has_padded", "_next", "_noted", "_zero_bases", "used")

    def __init__(self) -> None:
        self.used: set[str] = set()
        self._next: dict[str, int] = {}
        self._noted = 0
        self._has_padded = False
        self._zero_bases: set[str] = set()  # bare names that used ones ending in ".0" stand for

    def note(self, names: Collection[str], joined: str) -> None:
        """Mark freshly read names as used, whether they clash or not; see `has_clash`.

        The bulk form of `unique`, a few set operations. `joined` holds the same names with blanks
        between them.
        """
        self.used.update(names)
        self._noted += len(names)
        if ".0" in joined:
            self._zero_bases.update(filter(None, map(_zero_base, names)))
            self._has_padded = self._has_padded or _ANY_PADDED.search(joined) is not None

    @property
    def has_clash(self) -> bool:
        """Whether `unique` would change one of the names that were noted."""
        return (
            len(self.used) != self._noted
            or self._has_padded
            or not self.used.isdisjoint(self._zero_bases)
        )

    def unique(self, name: str) -> str:
        """`name` if it is free, else its base with the lowest free suffix; marks it as used.

        O(1) amortized over the names of one base.
        """
        padded = _PADDED.fullmatch(name)
        if padded:
            name = f"{padded[1]}.{int(padded[2])}"
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
        return name in self.used or name in self._zero_bases or _zero_base(name) in self.used

    def _mark(self, name: str) -> None:
        self.used.add(name)
        base = _zero_base(name)
        if base:
            self._zero_bases.add(base)

    def copy(self) -> NameTable:
        table = NameTable()
        table.used = set(self.used)
        table._next = dict(self._next)
        table._noted = self._noted
        table._has_padded = self._has_padded
        table._zero_bases = set(self._zero_bases)
        return table


def _zero_base(name: str) -> str | None:
    """The bare name that `name` stands for: `x` for `x.0`, none for `x.1.0`."""
    base = name[:-2]
    return base if name.endswith(".0") and not _SUFFIX.fullmatch(base) else None
