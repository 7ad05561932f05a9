"""The stack-frame tables of a module: which line of which program an instruction came from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hloopt.diagnostics import HloSyntaxError
from hloopt.ir.attributes.text import STRING
from hloopt.patterns import pattern

_ENTRY = pattern(rf"\d+\s+({STRING})", re.S)
_RECORD = pattern(r"\d+\s*\{([^{}]*)\}")
_FIELD = pattern(r"(\w+)=(-?\d{1,18})\b")
_SECTIONS = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")
_GAP = r"(?:\s|/\*.*?\*/|//[^\r\n]*)*"
_NAMES = rf"{_GAP}((?:\d+{_GAP}(?:{STRING}){_GAP})*)"
_RECORDS = rf"{_GAP}((?:\d+{_GAP}\{{[^{{}}]*\}}{_GAP})*)"
TABLES = pattern(
    rf"FileNames{_NAMES}FunctionNames{_NAMES}FileLocations{_RECORDS}StackFrames{_RECORDS}", re.S
)
"""The four tables, their entries grouped."""


@dataclass(frozen=True, slots=True)
class Location:
    """A range in a file; `file` and `function` are numbers of table entries, from 1."""

    file: int
    function: int
    line: int
    end_line: int
    column: int
    end_column: int


@dataclass(slots=True)
class StackFrames:
    """The four tables. A frame is (location, parent frame); both count from 1, 0 is none."""

    files: list[str]
    """File names as quoted in the text."""
    functions: list[str]
    locations: list[Location]
    frames: list[tuple[int, int]]

    @classmethod
    def parse(cls, text: str) -> StackFrames:
        """The tables in `text`, which may be empty. O(length of the text)."""
        tables = TABLES.match(text)
        if tables is None:
            return cls([], [], [], [])
        files, functions, locations, frames = tables.groups()
        return cls(
            _ENTRY.findall(files),
            _ENTRY.findall(functions),
            [_location(record) for record in _RECORD.findall(locations)],
            [_frame(record) for record in _RECORD.findall(frames)],
        )

    def format(self) -> str:
        """The tables as HLO text."""
        sections = (
            [f"{i} {name}" for i, name in enumerate(self.files, 1)],
            [f"{i} {name}" for i, name in enumerate(self.functions, 1)],
            [f"{i} {{{_format_location(at)}}}" for i, at in enumerate(self.locations, 1)],
            [
                f"{i} {{file_location_id={location} parent_frame_id={parent + 1}}}"
                for i, (location, parent) in enumerate(self.frames, 1)
            ],
        )
        return "\n\n".join(
            "\n".join((title, *lines)) for title, lines in zip(_SECTIONS, sections, strict=True)
        )

    def ancestry(self, frame: int) -> list[int]:
        """The frame and its ancestors, innermost first. O(depth)."""
        chain: dict[int, None] = {}
        while 0 < frame <= len(self.frames) and frame not in chain:
            chain[frame] = None
            frame = self.frames[frame - 1][1]
        return list(chain)


class FrameConcatenation:
    """Puts chains of frames on top of others, reusing equal frames. One per module and pass."""

    def __init__(self, tables: StackFrames) -> None:
        self.tables = tables
        self.has_new_frames = False
        self._numbers = {frame: i for i, frame in enumerate(tables.frames, 1)}
        self._done: dict[tuple[int, int], int] = {}

    def on_top_of(self, frame: int, parent: int) -> int:
        """The frame that has `frame`'s chain on top of `parent`.

        `frame` itself where `parent` is 0 (none) or already in its chain; `parent` where `frame`
        is 0. O(depth), once per pair.
        """
        if not parent:
            return frame
        key = (frame, parent)
        result = self._done.get(key)
        if result is None:
            result = self._done[key] = self._concatenate(frame, parent)
        return result

    def _concatenate(self, frame: int, parent: int) -> int:
        chain = self.tables.ancestry(frame)
        if parent in chain:
            return frame
        result = parent
        for number in reversed(chain):
            result = self._frame(self.tables.frames[number - 1][0], result)
        return result

    def _frame(self, location: int, parent: int) -> int:
        number = self._numbers.get((location, parent))
        if number is None:
            self.tables.frames.append((location, parent))
            number = self._numbers[location, parent] = len(self.tables.frames)
            self.has_new_frames = True
        return number


def _location(record: str) -> Location:
    return Location(
        *_fields(
            record,
            *("file_name_id", "function_name_id", "line", "end_line", "column", "end_column"),
        )
    )


def _format_location(at: Location) -> str:
    return (
        f"file_name_id={at.file} function_name_id={at.function} line={at.line} "
        f"end_line={at.end_line} column={at.column} end_column={at.end_column}"
    )


def _frame(record: str) -> tuple[int, int]:
    location, parent = _fields(record, "file_location_id", _PARENT)
    return location, parent


_PARENT = "parent_frame_id"
"""One more in the text than the number of the parent, which is 0 where there is none."""


def _fields(record: str, *names: str) -> list[int]:
    """The numbers of an entry, each of 32 bits, as protos have them. Raises HloSyntaxError."""
    found = {name: int(value) - (name == _PARENT) for name, value in _FIELD.findall(record)}
    if found.keys() != set(names):
        raise HloSyntaxError(f"expected {'=… '.join(names)}=… in the table, found '{record[:60]}'")
    for name, value in found.items():
        if not -(1 << 31) <= value < 1 << 31:
            raise HloSyntaxError(f"{name} does not fit into 32 bits in the table: '{record[:60]}'")
    return [found[name] for name in names]


# -- as XLA keeps them ----------------------------------------------------------------------------

FRAME_ID = pattern(r"\bstack_frame_id=(\d{1,18})(?!\d)")
"""The number of a frame in metadata."""


class CanonicalFrames:
    """The tables with what instructions refer to only, in the order in which they do.

    `numbers` has the new number of each old frame that is in use; references to others vanish.
    """

    def __init__(self, tables: str, numbers: dict[int, int]) -> None:
        self.tables = tables
        self.numbers = numbers

    def metadata(self, text: str) -> str:
        """The text of a metadata attribute with the number of its frame brought up to date."""
        return FRAME_ID.sub(self._number, text)

    def _number(self, found: re.Match[str]) -> str:
        return f"stack_frame_id={self.numbers.get(int(found[1]), 0)}"
