"""The frames of the user's program that metadata and the tables of a module tell of."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from hloopt.ir.attributes.values import OpMetadata, parse_metadata, parse_string
from hloopt.patterns import pattern

if TYPE_CHECKING:
    from hloopt.ir.sources.stack_frames import StackFrames

_MOST_FRAMES = 128  # of a stack; JAX writes 10, and an inlined call adds its own
_LIBRARY = pattern(
    r"(?:^|[/\\])(?:(?:site|dist)-packages|lib(?:64)?[/\\]python\d[\d.]*)[/\\]|^<frozen "
)


class Frame(NamedTuple):
    """A place in the program: a range of a file, and the function it is in.

    A number is 0, and `function` empty, where the module does not say it.
    """

    file: str
    line: int = 0
    end_line: int = 0
    column: int = 0
    end_column: int = 0
    function: str = ""

    @property
    def text(self) -> str:
        """`model.py:12`."""
        return f"{self.file}:{self.line}" if self.line else self.file

    @property
    def is_library(self) -> bool:
        """Whether the file belongs to an installed package or to Python itself."""
        return _LIBRARY.search(self.file) is not None


class Stack:
    """The frames at which an instruction was made, compared by identity."""

    __slots__ = ("frames", "user_frame")

    def __init__(self, frames: tuple[Frame, ...]) -> None:
        """At least one frame; what exceeds 128 is left out."""
        self.frames = frames[:_MOST_FRAMES]
        """Innermost first."""
        self.user_frame = next((f for f in frames if not f.is_library), frames[0])
        """The innermost frame that is not in a library; where all are, the innermost."""


class Stacks:
    """The stacks that metadata refers to by `tables`, the text of a module's frames."""

    def __init__(self, tables: str) -> None:
        self.tables = tables
        self._parsed: StackFrames | None = None
        self._of_metadata: dict[str, Stack | None] = {}
        self._of_frame: dict[int, Stack | None] = {0: None}
        self._of_frames: dict[tuple[Frame, ...], Stack] = {}
        self._of_location: dict[int, Frame | None] = {}

    def of(self, metadata: str) -> Stack | None:
        """The stack of a metadata attribute."""
        if metadata not in self._of_metadata:
            self._of_metadata[metadata] = self._find(parse_metadata(metadata))
        return self._of_metadata[metadata]

    def _find(self, metadata: OpMetadata) -> Stack | None:
        stack = self._of_number(metadata.stack_frame_id)
        if not metadata.source_file:
            return stack
        own = Frame(
            *(metadata.source_file, metadata.source_line, metadata.source_end_line),
            *(metadata.source_column, metadata.source_end_column),
        )
        if stack is None:
            return self._stack((own,))
        return stack if stack.frames[0].text == own.text else self._stack((own, *stack.frames))

    def _of_number(self, number: int) -> Stack | None:
        if number not in self._of_frame:
            if self._parsed is None:
                from hloopt.ir.sources.stack_frames import StackFrames

                self._parsed = StackFrames.parse(self.tables)
            frames = tuple(islice(self._walk(self._parsed, number), _MOST_FRAMES))
            self._of_frame[number] = self._stack(frames) if frames else None
        return self._of_frame[number]

    def _stack(self, frames: tuple[Frame, ...]) -> Stack:
        """The one stack with these frames."""
        stack = self._of_frames.get(frames)
        if stack is None:
            stack = self._of_frames[frames] = Stack(frames)
        return stack

    def _walk(self, tables: StackFrames, number: int) -> Iterator[Frame]:
        for ancestor in tables.ancestry(number):
            location = tables.frames[ancestor - 1][0]
            if location not in self._of_location:
                self._of_location[location] = _frame(tables, location)
            frame = self._of_location[location]
            if frame is None:
                return
            yield frame


def _frame(tables: StackFrames, location: int) -> Frame | None:
    """The place that a location's number stands for; None where it, or its file, is missing."""
    if not 0 < location <= len(tables.locations):
        return None
    at = tables.locations[location - 1]
    file = _name(tables.files, at.file)
    if not file:
        return None
    function = _name(tables.functions, at.function)
    return Frame(file, at.line, at.end_line, at.column, at.end_column, function)


def _name(table: list[str], number: int) -> str:
    """An entry of a table of names, or nothing where it has no such number."""
    return parse_string(table[number - 1]) if 0 < number <= len(table) else ""
