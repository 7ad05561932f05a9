"""A program in the making: computations, the values at hand, starts that wait for their dones."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from differential_lib.devices import Devices

ROWS = 12
"""Elements of a vector: 1, 2, 3 and 4 devices can share them."""
COLUMNS = 4

_T = TypeVar("_T")


class Program:
    """All computations of a module, and what was decided for the whole of it."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.devices = Devices(dice)
        # Integers are exact whatever the order of additions, so most programs have them.
        self.element = dice.choice(("s32", "s32", "s32", "f32", "f32", "bf16", "u32"))
        self.vector = f"{self.element}[{ROWS}]"
        self.matrix = f"{self.element}[{ROWS},{COLUMNS}]"
        self.scalar = f"{self.element}[]"
        self.theme = dice.choice(("", "", "sums", "stores", "permutes"))
        """The options of most loops: defects of nested loops of one kind are rare otherwise."""
        self.is_scheduled = dice.random() < 0.25
        self.computations: list[str] = []
        self.instructions = 0
        """Written so far, in all computations."""
        self.effects: list[str] = []
        """Instructions of the entry that have side effects, or the one that is elsewhere."""
        self.has_inner_effect = False
        self._reductions: dict[tuple[str, str], str] = {}
        self._names = 0

    @property
    def is_float(self) -> bool:
        return self.element in ("f32", "bf16")

    def name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}.{self._names}"

    def reduction(self, opcode: str = "add", element: str = "") -> str:
        """The name of a computation that combines two scalars."""
        key = opcode, element or self.element
        if key not in self._reductions or self.dice.random() < 0.1:
            name = self._reductions[key] = self.name(f"{opcode}_{key[1]}")
            self.computations.append(
                f"{name} {{\n  {name}.a = {key[1]}[] parameter(0)\n"
                f"  {name}.b = {key[1]}[] parameter(1)\n"
                f"  ROOT {name}.r = {key[1]}[] {opcode}({name}.a, {name}.b)\n}}"
            )
        return self._reductions[key]


@dataclass(eq=False)
class Scope:
    """One computation in the making; its lines are in an order that is a valid schedule."""

    program: Program
    depth: int
    """The number of loops, calls and branches around it."""
    may_meet: bool = True
    """Whether all devices get here, so that collectives are allowed."""
    may_tell: bool = True
    """Whether one caller runs this, so that side effects and transfers have an order."""
    lines: list[str] = field(default_factory=list)
    vectors: list[str] = field(default_factory=list)
    matrices: list[str] = field(default_factory=list)
    counters: list[str] = field(default_factory=list)
    """Integers that are the same on all devices."""
    pending: list[Callable[[], None]] = field(default_factory=list)
    """Dones to be written."""

    @property
    def dice(self) -> random.Random:
        return self.program.dice

    def add(self, shape: str, rest: str) -> str:
        """A new instruction; its name."""
        program = self.program
        program.instructions += 1
        name = f"v{program.instructions}"
        self.lines.append(f"{name} = {shape} {rest}")
        return name

    def pick(self, choices: Sequence[_T]) -> _T:
        return self.dice.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.dice.random() < probability

    def vector(self) -> str:
        """One of the vectors, the latest more often."""
        return self.pick(self.vectors[-3:] if self.chance(0.5) else self.vectors)

    def matrix(self) -> str:
        return self.pick(self.matrices[-2:] if self.chance(0.5) else self.matrices)

    def integer(self, value: int) -> str:
        return self.add("s32[]", f"constant({value})")

    def number(self, value: int) -> str:
        """A scalar of the program's element type."""
        return self.add(self.program.scalar, f"constant({value})")

    def full(self, value: int, shape: str = "") -> str:
        """An array, a vector unless `shape` says otherwise, of one value."""
        return self.add(
            shape or self.program.vector, f"broadcast({self.number(value)}), dimensions={{}}"
        )

    def device_index(self) -> str:
        """An integer that is other on each device."""
        kind = self.pick(self.program.devices.id_opcodes)
        return self.add("s32[]", f"convert({self.add('u32[]', f'{kind}()')})")

    def index(self, limit: int) -> str:
        """An index of a slice, below `limit` or not: constant, counted or other on each device."""
        match self.pick(("constant", "counter", "device", "device", "offset", "scaled")):
            case "counter" if self.counters:
                return self.pick(self.counters)
            case "device":
                return self.device_index()
            case "offset":
                table = ",".join(str(self.dice.randrange(limit)) for _ in range(4))
                offsets = self.add("s32[4]", f"constant({{{table}}})")
                at = self.device_index()
                one = self.add(
                    "s32[1]", f"dynamic-slice({offsets}, {at}), dynamic_slice_sizes={{1}}"
                )
                return self.add("s32[]", f"reshape({one})")
            case "scaled":
                factor = self.integer(self.pick((1, 2, 3, 4, 6)))
                return self.add("s32[]", f"multiply({self.device_index()}, {factor})")
            case _:
                return self.integer(self.dice.randrange(-1, limit + 1))

    def finish_some(self, share: float) -> None:
        """Write the dones of some of what is in flight."""
        for done in list(self.pending):
            if self.chance(share):
                self.pending.remove(done)
                done()

    def close(self, name: str, shape: str, root: str, *, is_entry: bool = False) -> None:
        """Write the computation, with the root `root`."""
        assert not self.pending
        self.lines.append(f"ROOT {name}.root = {shape} {root}")
        head = f"ENTRY {name}" if is_entry else name
        self.program.computations.append(f"{head} {{\n  " + "\n  ".join(self.lines) + "\n}")
