"""Expectations about what rematerialization tells its caller."""

from __future__ import annotations

from collections.abc import Iterator

from conformance_lib.expectations import More, demand_some, expectation
from conformance_lib.forms import TEXT, only
from conformance_lib.scene import Scene
from hloopt.ir import Instruction

_REMAT = ".remat"


@expectation("reported_originals", only(True))
def reported_originals(scene: Scene, expected: bool, more: More) -> Iterator[str]:
    """The pairs of the callback lead from each new instruction to the original of its name."""
    original_of: dict[Instruction, Instruction] = {
        new: original for original, new in scene.rematerialized
    }
    made = [i for i in scene.module.instructions() if _REMAT in i.name]
    demand_some("instruction made by rematerialization", made)
    for instruction in made:
        origin = instruction
        while origin in original_of:
            origin = original_of[origin]
        if origin.name != instruction.name.partition(_REMAT)[0]:
            yield f"%{instruction.name} was reported for %{origin.name}"


@expectation("warns", TEXT)
def warns(scene: Scene, expected: str, more: More) -> Iterator[str]:
    if not any(expected in note for note in scene.notes):
        yield f"the warnings are {scene.notes}"
