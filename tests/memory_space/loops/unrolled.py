"""Programs with a loop that stands unrolled in the schedule."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hloopt.ir import Instruction, Module
from hloopt.memory_space.costs.costs import MemorySpaceCosts
from hloopt.memory_space.options.cost_options import CostOptions
from hloopt.text import parse_module

RATES = CostOptions(
    flops_per_second=16,
    default_mem_bandwidth_bytes_per_second=32,
    alternate_mem_read_bandwidth_bytes_per_second=128,
    alternate_mem_write_bandwidth_bytes_per_second=128,
)
"""An add of f32[4]: 1.5 seconds in default memory, 0.375 in the other; a copy of one: 0.5."""


def unrolled(steps: Sequence[str], iterations: int = 3, result: Sequence[str] = ()) -> Module:
    """A module of repeated steps, `a{i} = add(b{p}, c{i})`: all f32[4].

    {i} is the number of the iteration, {p} that of the one before, -1 in the first one without
    its sign. Names that nothing defines are parameters; `result` are elements of the root.
    """
    lines = [
        step.format(i=f"_{number}", p=f"_{number - 1}".replace("-", "m"))
        for number in range(iterations)
        for step in steps
    ]
    return program(lines, result)


def program(lines: Sequence[str], result: Sequence[str] = ()) -> Module:
    """A module of these steps; names that nothing defines are parameters."""
    defined = [line.split(" = ")[0] for line in lines]
    read = [
        name for line in lines for name in re.findall(r"\w+", line.split("(", 1)[1].split(")")[0])
    ]
    parameters = [name for name in dict.fromkeys(read) if name not in defined]
    text = [f"{name} = f32[4] parameter({n})" for n, name in enumerate(parameters)]
    text += [line.replace(" = ", " = f32[4] ") for line in lines]
    text.append(f"ROOT root = tuple({', '.join(result)})")
    return parse_module("\n".join(["HloModule m, is_scheduled=true", "ENTRY e {", *text, "}"]))


def costs(module: Module) -> MemorySpaceCosts:
    return MemorySpaceCosts(module, RATES)


def time_of(module: Module, name: str) -> int:
    """The time of an instruction of the entry, where no computation is called."""
    return [each.name for each in module.entry.instructions].index(name)


def step(module: Module, name: str) -> Instruction:
    (found,) = (each for each in module.entry.instructions if each.name == name)
    return found
