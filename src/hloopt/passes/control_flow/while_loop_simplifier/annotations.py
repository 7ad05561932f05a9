"""Annotations of each array of a loop's state: shardings, original values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from hloopt.ir.attributes.annotations import origin, origin_leaves
from hloopt.ir.instruction import Instruction
from hloopt.passes.rewriting.replace import OF_THE_VALUE
from hloopt.passes.rewriting.tuples import leaf_shardings

Leaves: TypeAlias = list[str]
"""A text per array of a state, in pre-order."""
LeafMap: TypeAlias = Callable[[Leaves, str], Leaves]
"""The annotation of the arrays of a new state, given that of the old ones, and the empty one."""
Notes: TypeAlias = dict[str, Leaves]

_BLANK = {"sharding": "{replicated}", "origin": "{}"}


def notes_of(instruction: Instruction) -> Notes:
    """The annotations of an instruction for each of its arrays, by the name of the attribute."""
    notes: Notes = {}
    count = len(instruction.shape.leaves())
    for name, text in instruction.attributes.items():
        if name == "origin":
            notes[name] = origin_leaves(origin(text))
        elif name == "sharding":
            notes[name] = leaf_shardings(instruction) or []
    return {name: leaves for name, leaves in notes.items() if len(leaves) == count}


def annotate(instruction: Instruction, notes: Notes, leaf_map: LeafMap) -> None:
    """Let an instruction, which gives a new state, say what follows from notes of an old one.

    Where it said more, or other things, of its old state, that goes.
    """
    for name in OF_THE_VALUE:
        leaves = leaf_map(notes[name], _BLANK[name]) if name in notes else []
        text = None
        if leaves and name == "sharding":
            text = "{" + ", ".join(leaves) + "}"
        elif leaves and not any(element.is_tuple for element in instruction.shape.elements):
            text = "{(" + ", ".join(leaves) + ")}"
        if text != instruction.attributes.get(name):
            instruction.set_attribute(name, text)
