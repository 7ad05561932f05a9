"""The place in the user's program an instruction came from, as its metadata says."""

from __future__ import annotations

from hloopt.ir.attributes.values import parse_metadata
from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module
from hloopt.ir.sources.stacks import Stack, Stacks
from hloopt.patterns import pattern

_PLAIN_OP_NAME = pattern(r'\{(?:op_type="[^"\\]*" )?op_name="([^"\\]*)"')


def op_name_of(instruction: Instruction) -> str:
    """The `op_name` of an instruction's metadata, or nothing."""
    metadata = instruction.attributes.get("metadata")
    if not metadata:
        return ""
    plain = _PLAIN_OP_NAME.match(metadata)  # nearly all are: the rest need not be parsed
    return plain[1] if plain else parse_metadata(metadata).op_name


def stack_of(instruction: Instruction) -> Stack | None:
    """The source stack in an instruction's own metadata; None where there is none.

    The file and line in the metadata, if there are any, then the stack frames of the module. A
    stack ends before a frame that is not in the tables or comes a second time. O(frames), once
    per distinct metadata while the tables stay the same.
    """
    metadata = instruction.attributes.get("metadata")
    return _stacks(instruction.parent.module).of(metadata) if metadata else None


def _stacks(module: Module) -> Stacks:
    kept = module.stacks
    if kept is None or kept.tables != module.stack_frames:
        kept = module.stacks = Stacks(module.stack_frames)
    return kept
