"""Whether our passes made of a module what XLA's made of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from hloopt.analysis.equality import Equality
from hloopt.files import read_module
from hloopt.ir import Computation, Module
from hloopt.ir.literals.literal_values import SMALLEST_SCALE
from hloopt.pass_framework.base import PassContext
from hloopt.pass_framework.registry import create_pass


def run(name: str, options: dict[str, object], file: Path) -> Module:
    """What a pass makes of the module in a file."""
    module = read_module(str(file))
    create_pass(name, options).run(module, PassContext())
    return module


def without_leftovers(module: Module) -> None:
    """Remove what nothing reads: ours does so with what it made dead, XLA leaves it to others."""
    for cleaner in ("tuple-simplifier", "dce"):
        create_pass(cleaner).run(module, PassContext())


def with_least_scales(text: str) -> str:
    """What XLA printed, with the f8e8m0fnu whose bits are 0 as a number that reads back as it."""
    return text.replace("5.9e-39", SMALLEST_SCALE)


def put_parameters_first(module: Module) -> None:
    """XLA prints unused ones where they come in its order, which a change of users changes."""
    for computation in [] if module.is_scheduled else module.computations.values():
        computation.reorder(
            list(dict.fromkeys([*computation.parameters, *computation.instructions]))
        )


def differences(ours: Module, theirs: Module) -> list[str]:
    """Computations of either module that the other one has not, names and order aside.

    Two computations are the same if they have the same instructions with the same operands,
    attributes, metadata and control predecessors, and call the same.
    """
    equality = Equality(is_layout_sensitive=True, ignored=frozenset())
    for module in (ours, theirs):
        put_parameters_first(module)

    def key(computation: Computation) -> tuple[bool, int]:
        return computation.is_entry, equality.class_of(computation)

    found = []
    for one, other in ((ours, theirs), (theirs, ours)):
        left = Counter(map(key, other.computations.values()))
        for computation in one.computations.values():
            left[key(computation)] -= 1
            if left[key(computation)] < 0:
                found.append(f"only in {'ours' if one is ours else 'theirs'}: {computation.name}")
    return found
