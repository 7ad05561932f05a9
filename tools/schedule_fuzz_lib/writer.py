"""A module to be scheduled in the making: its computations, and the arrays at hand in each."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

DEVICES = 8

_T = TypeVar("_T")
_NAME = re.compile(r"[\w.-]+")


class Array(NamedTuple):
    """An instruction whose result is one array of f32."""

    name: str
    size: int
    """Elements."""

    @property
    def shape(self) -> str:
        return vector(self.size)


def vector(size: int) -> str:
    """The shape of an array of f32."""
    return f"f32[{size}]"


class Theme(NamedTuple):
    """Settings drawn for the whole of a module."""

    sizes: tuple[int, ...]
    """Elements that arrays have."""
    grouped: bool
    """Whether there are scheduling groups."""
    transfers: bool
    """Whether there are sends and receives."""
    loops: float
    """The share of steps that call another computation."""
    controls: float
    """The share of instructions with a control predecessor."""
    hints: float
    """The share of instructions with a hint on their place."""
    steps: int
    """Of the entry."""


class Program:
    """All computations of a module, and what occurs in it.

    Every step draws from a source of its own, so without the steps in `skipped` the rest stays
    as alike as it can.
    """

    def __init__(self, seed: int, number: int, skipped: Collection[str] = ()) -> None:
        self.seed = seed
        self.number = number
        self.skipped = frozenset(skipped)
        self.theme = _theme(self.dice("theme"))
        self.computations: list[str] = []
        self.features: set[str] = set()
        """Of the whole module."""
        self.steps: list[str] = []
        """The names of the steps that were taken."""
        self._names: dict[str, int] = {}
        self._channels = 0

    def dice(self, purpose: str) -> random.Random:
        """A source of chance for one purpose."""
        return random.Random(f"{self.seed}:{self.number}:{purpose}")

    def name(self, stem: str) -> str:
        """A name that no other program of the seed has: a profile knows instructions by name."""
        count = self._names[stem] = self._names.get(stem, 0) + 1
        return f"{stem}.{self.number}_{count}"

    def channel(self) -> int:
        self._channels += 1
        return self._channels

    def text(self) -> str:
        """The module. It has no schedule."""
        head = f"HloModule m{self.number}, num_partitions={DEVICES}\n\n"
        return head + "\n\n".join(self.computations) + "\n"


def _theme(dice: random.Random) -> Theme:
    scale = dice.choice((64, 1 << 10, 1 << 20, 1 << 23))
    spread = dice.choice(((1,), (1, 1, 2), (1, 2, 4), (1, 3, 16)))
    return Theme(
        sizes=tuple(scale * factor for factor in spread),
        grouped=dice.random() < 0.2,
        transfers=dice.random() < 0.35,
        loops=dice.choice((0.0, 0.05, 0.12)),
        controls=dice.choice((0.0, 0.03, 0.12)),
        hints=dice.choice((0.0, 0.0, 0.1)),
        steps=dice.choice((8, 16, 16, 30, 50)),
    )


@dataclass(eq=False)
class Scope:
    """One computation in the making; its lines are in an order in which they could run."""

    program: Program
    path: str
    """The way to it from the entry."""
    depth: int
    """The number of loops, calls and branches around it."""
    lines: list[str] = field(default_factory=list)
    arrays: list[Array] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Names of instructions that are no such array."""
    pending: list[Callable[[], None]] = field(default_factory=list)
    """Dones to be written."""
    dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.dice = self.program.dice(self.path)

    # -- decisions --------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        return self.dice.random() < probability

    def pick(self, choices: Sequence[_T]) -> _T:
        return choices[int(self.dice.random() * len(choices))]

    def size(self) -> int:
        return self.pick(self.program.theme.sizes)

    def array(self, size: int = 0) -> Array:
        """One of the arrays, of `size` elements if that is told; the latest more often."""
        chosen = self.arrays[-6:] if self.chance(0.6) else self.arrays
        found = self.pick(chosen)
        return found if size in (0, found.size) else self.resized(found, size)

    def resized(self, array: Array, size: int) -> Array:
        """An array of another size, made of one by an instruction more."""
        if size < array.size:
            rest = f"slice({array.name}), slice={{[0:{size}]}}"
            return Array(self.add("slice", vector(size), rest), size)
        zero = self.add("constant", "f32[]", "constant(0)")
        rest = f"pad({array.name}, {zero}), padding=0_{size - array.size}"
        return Array(self.add("pad", vector(size), rest), size)

    # -- writing ----------------------------------------------------------------------------------

    def add(
        self, stem: str, shape: str, rest: str, notes: Sequence[str] = (), config: str = ""
    ) -> str:
        """A new instruction; its name."""
        if self.arrays and self.chance(self.program.theme.controls):
            earlier = self.pick([*[array.name for array in self.arrays[-8:]], *self.others[-4:]])
            rest += f", control-predecessors={{{earlier}}}"
            self.program.features.add("control edges")
        if notes:
            rest += f", frontend_attributes={{{','.join(notes)}}}"
        if config:
            rest += f", backend_config={config}"
        name = self.program.name(stem)
        self.lines.append(f"{name} = {shape} {rest}")
        return name

    def add_array(
        self, stem: str, size: int, rest: str, notes: Sequence[str] = (), config: str = ""
    ) -> Array:
        """A new instruction whose result others may use."""
        array = Array(self.add(stem, vector(size), rest, notes, config), size)
        self.arrays.append(array)
        return array

    def unread(self) -> list[Array]:
        """The arrays that nothing reads yet."""
        read = set(_NAME.findall("\n".join(line.partition(" = ")[2] for line in self.lines)))
        return [array for array in self.arrays if array.name not in read]

    def integer(self, value: int) -> str:
        return self.add("constant", "s32[]", f"constant({value})")

    def computation(self, stem: str, lines: Sequence[str], thread: str = "") -> str:
        """A new computation of lines that need no steps; its name."""
        name = self.program.name(stem)
        end = f', execution_thread="{thread}"' if thread else ""
        body = "\n  ".join(lines)
        self.program.computations.append(f"{name} {{\n  {body}\n}}{end}")
        return name

    def finish_some(self, share: float) -> None:
        """Write the dones of some of what is in flight."""
        for done in list(self.pending):
            if self.chance(share):
                self.pending.remove(done)
                done()

    def close(self, stem: str, shape: str, root: str, *, is_entry: bool = False) -> str:
        """Write the computation, with the root `root`; its name."""
        assert not self.pending
        name = self.program.name(stem)
        self.lines.append(f"ROOT {self.program.name('root')} = {shape} {root}")
        head = f"ENTRY {name}" if is_entry else name
        self.program.computations.append(f"{head} {{\n  " + "\n  ".join(self.lines) + "\n}")
        return name
