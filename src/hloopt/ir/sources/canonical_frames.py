"""The stack frames of a module as XLA keeps them."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from hloopt.ir.module import Module
from hloopt.ir.sources.stack_frames import FRAME_ID, CanonicalFrames, StackFrames

_Entry = TypeVar("_Entry")


def canonical_frames(module: Module) -> CanonicalFrames:
    """The stack frames of `module` as XLA prints them. O(instructions), once per version."""
    kept = module.canonical_frames
    if kept is None or kept[0] != module.version:
        kept = module.canonical_frames = module.version, _canonical(module)
    return kept[1]


def _canonical(module: Module) -> CanonicalFrames:
    old = StackFrames.parse(module.stack_frames)
    new = StackFrames([], [], [], [])
    copier = _Copier(old, new)
    for instruction in module.instructions():
        metadata = instruction.attributes.get("metadata", "")
        used = FRAME_ID.search(metadata) if "stack_frame_id" in metadata else None
        if used:
            copier.frame(int(used[1]))
    numbers = {frame: number for frame, number in copier.frames.items() if number}
    return CanonicalFrames(new.format() if new.frames else "", numbers)


def _quoted(text: str) -> str:
    from hloopt.ir.attributes.values import parse_string, quote_string

    return quote_string(parse_string(text))


class _Copier:
    """Copies entries of one set of tables into another, equal ones once, callers first."""

    def __init__(self, old: StackFrames, new: StackFrames) -> None:
        self.old = old
        self.new = new
        self.frames: dict[int, int] = {0: 0}  # new numbers; 0 for what is not a frame
        self._numbers: dict[object, int] = {}

    def frame(self, number: int) -> int:
        chain: list[int] = []
        while number not in self.frames:
            self.frames[number] = 0  # until known, so that a cycle ends
            chain.append(number)
            if not 0 < number <= len(self.old.frames):
                break
            number = self.old.frames[number - 1][1]
        below = chain.pop() if chain and not 0 < chain[-1] <= len(self.old.frames) else None
        parent = self.frames[number]
        is_whole = below is None and (number == 0 or parent != 0)
        if is_whole and all(self._is_location(self.old.frames[n - 1][0]) for n in chain):
            for number in reversed(chain):
                location = self._location(self.old.frames[number - 1][0])
                parent = self._number(
                    ("frame", location, parent), self.new.frames, (location, parent)
                )
                self.frames[number] = parent
        return self.frames[chain[0]] if chain else parent

    def _is_location(self, number: int) -> bool:
        if not 0 < number <= len(self.old.locations):
            return False
        at = self.old.locations[number - 1]
        return 0 < at.file <= len(self.old.files) and 0 < at.function <= len(self.old.functions)

    def _location(self, number: int) -> int:
        at = self.old.locations[number - 1]
        file, function = self.old.files[at.file - 1], self.old.functions[at.function - 1]
        moved = replace(
            at,
            file=self._number(("file", file), self.new.files, _quoted(file)),
            function=self._number(("function", function), self.new.functions, _quoted(function)),
        )
        return self._number(moved, self.new.locations, moved)

    def _number(self, key: object, table: list[_Entry], entry: _Entry) -> int:
        number = self._numbers.get(key)
        if number is None:
            table.append(entry)
            number = self._numbers[key] = len(table)
        return number
