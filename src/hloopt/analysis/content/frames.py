"""Keys for stack frames, comparable across modules, whose tables number them differently."""

from __future__ import annotations

import json
from hashlib import sha256

from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.sources.stack_frames import StackFrames


class FrameKeys:
    """Numbers stack frames by file, function, lines and callers: equal frames get equal numbers.

    The numbers are hashes of 64 bits, the same in every process.
    """

    def __init__(self) -> None:
        self._tables: dict[str, tuple[StackFrames, dict[int, int]]] = {}

    def key(self, module: Module, frame: int) -> int:
        """The number of a frame of `module`; 0 if its tables lack the frame, which XLA then drops.

        O(depth) for a frame whose callers have no numbers yet.
        """
        text = module.stack_frames
        if text not in self._tables:
            self._tables[text] = StackFrames.parse(text), {}
        tables, known = self._tables[text]
        chain = [number for number in tables.ancestry(frame) if number not in known]
        for number in reversed(chain):
            location, parent = tables.frames[number - 1]
            key = (self._location(tables, location), known.get(parent, 0))
            known[number] = _number(key)
        return known.get(frame, 0)

    def same_tables(self, before: Instruction, after: Instruction) -> bool:
        """Whether the modules of two instructions number frames alike."""
        return before.parent.module.stack_frames == after.parent.module.stack_frames

    def _location(self, tables: StackFrames, number: int) -> object:
        if not 0 < number <= len(tables.locations):
            return number
        at = tables.locations[number - 1]
        files, functions = tables.files, tables.functions
        return (
            files[at.file - 1] if 0 < at.file <= len(files) else at.file,
            functions[at.function - 1] if 0 < at.function <= len(functions) else at.function,
            *(at.line, at.end_line, at.column, at.end_column),
        )


def _number(key: object) -> int:
    """A hash of nested tuples of strings and integers; never 0, which is no frame."""
    text = json.dumps(key)  # ASCII, where repr depends on the version of Unicode
    return int.from_bytes(sha256(text.encode()).digest()[:8], "big") or 1
