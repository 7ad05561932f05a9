"""Unique names, given out as XLA does."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from hloopt.patterns import pattern

_IRREGULAR = pattern(r"\.(?:0\d*|-\d+)(?= |$)")


def split_name(name: str) -> tuple[str, int | None]:
    """A name as base and numeric suffix: `dot.3` is `dot` and 3, a bare `dot` has None."""
    base, _, suffix = name.rpartition(".")
    digits = suffix.removeprefix("-")
    if not (base and digits.isdecimal() and digits.isascii() and len(digits) <= 100):
        return name, None
    number = int(suffix)
    return (base, number) if -(1 << 63) <= number < 1 << 63 else (name, None)


def _base_of(name: str) -> str:
    """The base alone, which for most names takes less."""
    base, _, suffix = name.rpartition(".")
    if "." not in name:
        return name
    if suffix.isdecimal() and suffix.isascii() and len(suffix) < 19 and base:
        return base
    return split_name(name)[0]


class NameTable:
    """The names in use in one module; names once used are never given out again.

    A name is a base and a numeric suffix: `dot.3`; a bare `dot` counts as suffix 0, and `dot.03`
    is written `dot.3`.
    """

    __slots__ = ("_next", "_noted", "_renamed", "_zero_bases", "used")

    def __init__(self) -> None:
        self.used: set[str] = set()
        self._next: dict[str, int] = {}
        self._noted = 0
        self._renamed = False
        self._zero_bases: set[str] = set()  # of noted names that end in ".0"

    def note(self, names: Collection[str], joined: str) -> None:
        """Mark freshly read names as used, whether they clash or not; see `has_clash`.

        The bulk form of `unique`, a few set operations. `joined` holds the same names with blanks
        between them.
        """
        self.used.update(names)
        self._noted += len(names)
        if ".0" in joined or ".-" in joined:
            self._note_irregular(
                joined[joined.rfind(" ", 0, suffix.start()) + 1 : suffix.end()]
                for suffix in _IRREGULAR.finditer(joined)
            )

    def _note_irregular(self, names: Iterable[str]) -> None:
        """Look closer at names whose suffix is 0, begins with 0 or is negative."""
        for name in names:
            base, suffix = split_name(name)
            if suffix is not None and name != f"{base}.{suffix}":
                self._renamed = True
            elif suffix == 0 and split_name(base)[1] is None:
                self._zero_bases.add(base)

    @property
    def has_clash(self) -> bool:
        """Whether `unique` would have changed one of the names that were noted."""
        return (
            self._renamed
            or len(self.used) != self._noted
            or not self.used.isdisjoint(self._zero_bases)
        )

    def unique(self, name: str) -> str:
        """`name` if it is free, else its base with the lowest free suffix; marks it as used.

        O(1) amortized over the names of one base.
        """
        used = self.used
        if name in used:
            base = _base_of(name)
        else:
            base, suffix = split_name(name)
            if not self._is_taken(base, suffix or 0):
                result = name if suffix is None else f"{base}.{suffix}"
                used.add(result)
                return result
        free = self._next.get(base, 0)
        if free == 0 and self._is_taken(base, 0):
            free = 1
        while (result := f"{base}.{free}") in used:
            free += 1
        self._next[base] = free + 1
        used.add(result)
        return result

    def _is_taken(self, base: str, suffix: int) -> bool:
        if f"{base}.{suffix}" in self.used:
            return True
        return suffix == 0 and base in self.used and split_name(base)[1] is None

    def copy(self) -> NameTable:
        table = NameTable()
        table.used = set(self.used)
        table._next = dict(self._next)
        table._noted = self._noted
        table._renamed = self._renamed
        table._zero_bases = set(self._zero_bases)
        return table
