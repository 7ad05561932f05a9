"""Expectations about the names of instructions that a pass made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from conformance_lib.expectations import More, compare, demand_some, expectation
from conformance_lib.forms import INT, TEXT, mapping
from conformance_lib.scene import Scene
from conformance_lib.selector_syntax import NAME

_REMAT = ".remat"


@expectation("new_names_contain", TEXT)
def new_names_contain(scene: Scene, expected: str, more: More) -> Iterator[str]:
    before = scene.names.all()
    new = [
        instruction.name
        for computation in scene.module.computations.values()
        if computation.name in before
        for instruction in computation.instructions
        if instruction.name not in before[computation.name]
    ]
    demand_some("new instruction", new)
    for name in new:
        if expected not in name:
            yield f"%{name} is new"


@expectation("remat_groups", mapping(NAME, INT))
def remat_groups(scene: Scene, expected: dict[str, int], more: More) -> Iterator[str]:
    names = (instruction.name for instruction in scene.module.instructions())
    found = Counter(name.partition(_REMAT)[0] for name in names if _REMAT in name)
    yield from compare("instructions made by rematerialization", dict(found), expected)
