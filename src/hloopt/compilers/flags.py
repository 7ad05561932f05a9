"""Flags of XLA, as the variable XLA_FLAGS takes them."""

from __future__ import annotations

import mmap
import re
from collections.abc import Sequence

from hloopt.diagnostics import HloError

_FLAG = re.compile(r"(?:--)?(?P<name>xla_\w+)(?:=(?P<value>\S*))?")

UNKNOWN_FLAG = "HLO020"
"""The code of an error about a flag that is none of XLA."""
_OURS = {
    "xla_dump_to": "`hloopt xla passes --keep DIR` leaves the dumps",
    "xla_dump_hlo_as_text": "`hloopt xla passes --keep DIR` leaves the dumps",
    "xla_dump_hlo_pass_re": "`hloopt xla passes` has dumps around all passes",
}
"""Flags that are not the user's here, each with what is there in place of it."""
_IN_LIBRARY = re.compile(rb"\0(xla_[a-z0-9_]+)(?=\0)")
_SPECIAL = re.compile(r"[\s\"'\\]")


class Flags:
    """Flags by name; XLA takes the last of one that is given twice."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    @classmethod
    def of(cls, texts: Sequence[str]) -> Flags:
        """Flags that are written `xla_NAME=VALUE`, with or without `--`; without a value `true`.

        Raises HloError for other texts.
        """
        flags = cls()
        for text in texts:
            match = _FLAG.fullmatch(text)
            if match is None:
                raise HloError(
                    f"'{text}' is no flag of XLA: xla_NAME=VALUE, without spaces",
                    code=UNKNOWN_FLAG,
                )
            if (help := _OURS.get(match["name"])) is not None:
                raise HloError(f"{match['name']} is not free here", help=help, code=UNKNOWN_FLAG)
            flags.set(match["name"], "true" if match["value"] is None else match["value"])
        return flags

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def set(self, name: str, value: str) -> None:
        """Let a flag have a value."""
        self._values[name] = value

    def set_default(self, name: str, value: str) -> None:
        """Let a flag have a value if it has none."""
        self._values.setdefault(name, value)

    def append(self, name: str, value: str) -> None:
        """Add to the values of a flag that is a list."""
        before = self._values.get(name)
        self._values[name] = f"{before},{value}" if before else value

    def text(self) -> str:
        """As XLA_FLAGS, in which values with spaces are quoted."""
        return " ".join(f"--{name}={_quoted(value)}" for name, value in self._values.items())

    def texts(self) -> list[str]:
        """As `of` takes them."""
        return [f"{name}={value}" for name, value in self._values.items()]


def _quoted(value: str) -> str:
    if not _SPECIAL.search(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def flags_in(library: str) -> set[str]:
    """Names of flags, and what looks like them, in the library of a compiler; empty where it cannot
    be read. Reads all of it: half a second."""
    try:
        with (
            open(library, "rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        ):
            return {match[1].decode() for match in _IN_LIBRARY.finditer(content)}
    except (OSError, ValueError):  # an empty file cannot be mapped
        return set()


def with_large_constants(texts: Sequence[str]) -> list[str]:
    """Flags with which dumps have the values of all constants, unless they say otherwise."""
    flags = Flags.of(texts)
    flags.set_default("xla_dump_large_constants", "true")
    return flags.texts()
