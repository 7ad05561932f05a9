"""Put the op_name and the stack frame of a call in front of those of what it calls."""

from __future__ import annotations

from dataclasses import replace

from hloopt.ir.attributes.values import OpMetadata, format_metadata, parse_metadata
from hloopt.ir.computation import Computation
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.opcode import ASYNC, Opcode
from hloopt.ir.sources.stack_frames import FrameConcatenation, StackFrames

_LONGEST_NAME = 1024  # characters; a longer op_name is not made
_RUNS_ITS_CALLEES = ASYNC | {Opcode.WHILE, Opcode.CONDITIONAL}
_NOTHING = OpMetadata()


class CallMetadata:
    """Adds callers' metadata to instructions of one module. `finish` when done."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self._frames: FrameConcatenation | None = None
        self._prefixed: dict[tuple[str, str, int], str | None] = {}

    def of(self, call: Instruction) -> tuple[str, int]:
        """The prefix and the frame that a call passes on."""
        metadata = _metadata(call)
        return metadata.op_name.removesuffix("/"), metadata.stack_frame_id

    def add_to(self, instruction: Instruction, prefix: str, frame: int) -> bool:
        """Update the instruction, and what it runs if it is control flow; whether it changed.

        O(instructions reached).
        """
        if not prefix and not frame:
            return False
        changed = False
        stack = [instruction]
        seen: set[Computation] = set()
        while stack:
            current = stack.pop()
            changed |= self._update(current, prefix, frame)
            if current.opcode in _RUNS_ITS_CALLEES:
                for called in current.called:
                    if called not in seen:
                        seen.add(called)
                        stack += called.instructions
        return changed

    def finish(self) -> None:
        """Write new stack frames into the module."""
        if self._frames is not None and self._frames.has_new_frames:
            self.module.set_stack_frames(self._frames.tables.format())

    def _update(self, instruction: Instruction, prefix: str, frame: int) -> bool:
        text = instruction.attributes.get("metadata", "")
        key = (text, prefix, frame)
        if key not in self._prefixed:
            self._prefixed[key] = self._concatenate(text, prefix, frame)
        result = self._prefixed[key]
        if result is None or result == text:
            return False
        instruction.set_attribute("metadata", result)
        return True

    def _concatenate(self, text: str, prefix: str, frame: int) -> str | None:
        """The metadata with prefix and frame; None where nothing changes."""
        metadata = parse_metadata(text) if text else _NOTHING
        updated = replace(
            metadata,
            op_name=_prefixed(metadata.op_name, prefix),
            stack_frame_id=self._on_top_of(metadata.stack_frame_id, frame),
        )
        return None if updated == metadata else format_metadata(updated)

    def _on_top_of(self, frame: int, parent: int) -> int:
        if not parent:
            return frame
        if self._frames is None:
            self._frames = FrameConcatenation(StackFrames.parse(self.module.stack_frames))
        return self._frames.on_top_of(frame, parent)


def _metadata(instruction: Instruction) -> OpMetadata:
    text = instruction.attributes.get("metadata")
    return _NOTHING if text is None else parse_metadata(text)


def _prefixed(name: str, prefix: str) -> str:
    if not prefix:
        return name
    bare = name.removeprefix("/").removesuffix("/")
    if bare.startswith(prefix) or len(prefix) + len(bare) >= _LONGEST_NAME:
        return name
    return f"{prefix}/{bare}" if bare else prefix
