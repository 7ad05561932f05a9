"""The stack-frame tables of a module: which line of which program an instruction came from."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hloopt.patterns import pattern

_ENTRY = pattern(r'\d+\s+("(?:[^"\\]|\\.)*")')
_RECORD = pattern(r"\d+\s*\{([^{}]*)\}")
_FIELD = pattern(r"(\w+)=(-?\d+)")
_SECTIONS = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


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
    """The four tables. A frame is (location, parent frame); both count from 1, 0 is no parent."""

    files: list[str]
    """File names as quoted in the text."""
    functions: list[str]
    locations: list[Location]
    frames: list[tuple[int, int]]

    @classmethod
    def parse(cls, text: str) -> StackFrames:
        """The tables in `text`, which may be empty. O(length of the text)."""
        parts = re.split(
            r"^\s*(?:FileNames|FunctionNames|FileLocations|StackFrames)\b", text, flags=re.M
        )
        if len(parts) != 5:
            return cls([], [], [], [])
        _, files, functions, locations, frames = parts
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
        chain: list[int] = []
        while 0 < frame <= len(self.frames) and frame not in chain:
            chain.append(frame)
            frame = self.frames[frame - 1][1]
        return chain

    def chain(self, frame: int) -> list[tuple[str, str, int]]:
        """File, function and line of the frame and its ancestors, innermost first."""
        result: list[tuple[str, str, int]] = []
        for number in self.ancestry(frame):
            at = self.locations[self.frames[number - 1][0] - 1]
            result.append(
                (self.files[at.file - 1][1:-1], self.functions[at.function - 1][1:-1], at.line)
            )
        return result


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
    fields = {name: int(value) for name, value in _FIELD.findall(record)}
    return Location(
        fields.get("file_name_id", 0),
        fields.get("function_name_id", 0),
        fields.get("line", 0),
        fields.get("end_line", 0),
        fields.get("column", 0),
        fields.get("end_column", 0),
    )


def _format_location(at: Location) -> str:
    return (
        f"file_name_id={at.file} function_name_id={at.function} line={at.line} "
        f"end_line={at.end_line} column={at.column} end_column={at.end_column}"
    )


def _frame(record: str) -> tuple[int, int]:
    fields = {name: int(value) for name, value in _FIELD.findall(record)}
    return fields.get("file_location_id", 0), fields.get("parent_frame_id", 1) - 1
