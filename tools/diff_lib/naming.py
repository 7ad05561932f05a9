"""Ways to name the instructions and computations of an edited module."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from random import Random

from hloopt.ir.instruction import Instruction
from hloopt.ir.module import Module


def keep(module: Module, random: Random) -> None:
    """Leave all names as they are."""


def renumber(module: Module, random: Random) -> None:
    """Number by opcode in order, as a compiler does that builds the module anew."""
    counts: Counter[str] = Counter()
    start = random.randrange(1, 4)

    def name(instruction: Instruction) -> str:
        counts[instruction.opcode.value] += 1
        return f"{instruction.opcode.value}.{counts[instruction.opcode.value] + start}"

    _rename(module, name)


def renumber_in_one(module: Module, random: Random) -> None:
    """Number all instructions in one sequence, as JAX does."""
    number = random.randrange(3)

    def name(instruction: Instruction) -> str:
        nonlocal number
        number += 1
        return f"{instruction.opcode.value}.{number}"

    _rename(module, name)


def at_random(module: Module, random: Random) -> None:
    """Name everything at random."""
    numbers = list(range(1, 2 * module.instruction_count() + 1))
    random.shuffle(numbers)
    _rename(module, lambda instruction: f"value_{numbers.pop()}")


def swap(module: Module, random: Random) -> None:
    """Permute the existing names: each instruction gets the name of another one."""
    names = [instruction.name for instruction in module.instructions()]
    random.shuffle(names)
    _rename(module, lambda instruction: names.pop())


NAMINGS: Mapping[str, Callable[[Module, Random], None]] = {
    "kept": keep,
    "renumbered": renumber,
    "renumbered in one sequence": renumber_in_one,
    "at random": at_random,
    "swapped": swap,
}


def _rename(module: Module, name: Callable[[Instruction], str]) -> None:
    for instruction in module.instructions():
        instruction.name = name(instruction)
        instruction.changed()
    computations = list(module.computations.values())
    for number, computation in enumerate(computations):
        computation.name = f"region_{number}.{number + 7}"
        computation.changed()
    module.computations = {computation.name: computation for computation in computations}
