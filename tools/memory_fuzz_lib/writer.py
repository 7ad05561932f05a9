"""A module whose buffers are to be placed, in the making: computations and the arrays in each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")

FLOATS = ("f32", "bf16", "f16", "f64")
NARROW_FLOATS = ("f8e4m3fn", "f8e5m2")
INTEGERS = ("s32", "u32", "s64", "u8", "s8", "s16")
HALF_BYTES = ("s4", "u4")
COMPLEX = ("c64", "c128")
REAL = (*FLOATS, *INTEGERS)
"""The types with arithmetic and an order."""
NUMBERS = (*REAL, *COMPLEX)
ALL = (*NUMBERS, *NARROW_FLOATS, *HALF_BYTES, "pred")


class Value(NamedTuple):
    """An instruction whose result is one array."""

    name: str
    type: str
    dimensions: tuple[int, ...]

    @property
    def shape(self) -> str:
        return shape_text(self.type, self.dimensions)

    @property
    def size(self) -> int:
        """The number of elements."""
        return count(self.dimensions)


def shape_text(type_name: str, dimensions: Sequence[int]) -> str:
    """The text of the shape of an array."""
    return f"{type_name}[{','.join(map(str, dimensions))}]"


def count(dimensions: Sequence[int]) -> int:
    """The number of elements of an array."""
    result = 1
    for size in dimensions:
        result *= size
    return result


def tuple_text(values: Sequence[Value]) -> str:
    """The text of the shape of a tuple of arrays."""
    return f"({', '.join(value.shape for value in values)})"


def names(values: Sequence[Value]) -> str:
    """The names of operands."""
    return ", ".join(value.name for value in values)


class Theme(NamedTuple):
    """Settings drawn for the whole of a module."""

    shapes: tuple[tuple[int, ...], ...]
    """Dimensions that parameters and new arrays have."""
    types: tuple[str, ...]
    replicas: int
    partitions: int
    loops: float
    """The share of steps that call another computation."""
    placement: float
    """The share of steps that say where or when something is done."""
    arithmetic: float
    """The share of the others that compute and do not only move."""
    steps: int
    """Of the entry."""

    @property
    def devices(self) -> int:
        return self.replicas * self.partitions


@dataclass
class Program:
    """All computations of a module, and what occurs in it."""

    dice: Random
    theme: Theme
    computations: list[str] = field(default_factory=list)
    features: set[str] = field(default_factory=set)
    _called: dict[str, str] = field(default_factory=dict)
    """The names of computations by text."""
    _names: int = 0
    _channels: int = 0

    def name(self, stem: str) -> str:
        self._names += 1
        return f"{stem}.{self._names}"

    def channel(self) -> int:
        self._channels += 1
        return self._channels

    def computation(self, stem: str, *lines: str) -> str:
        """A computation of lines that need no steps, one for all that call it; its name."""
        text = "\n  ".join(lines)
        if text not in self._called:
            self._called[text] = name = self.name(stem)
            self.computations.append(f"{name} {{\n  {text}\n}}")
        return self._called[text]

    def reducer(self, opcode: str, type_name: str) -> str:
        """A computation of two scalars; its name."""
        shape = f"{type_name}[]"
        parameters = (f"x = {shape} parameter(0)", f"y = {shape} parameter(1)")
        return self.computation(opcode, *parameters, f"ROOT z = {shape} {opcode}(x, y)")


@dataclass(eq=False)
class Scope:
    """One computation in the making; its lines are in an order in which they could run."""

    program: Program
    depth: int = 0
    """The number of loops, calls and branches around it."""
    lines: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    @property
    def dice(self) -> Random:
        return self.program.dice

    # -- decisions --------------------------------------------------------------------------------

    def chance(self, probability: float) -> bool:
        return self.dice.random() < probability

    def pick(self, choices: Sequence[_T]) -> _T:
        return choices[int(self.dice.random() * len(choices))]

    def find(self, fits: Callable[[Value], bool]) -> Value | None:
        """One of the arrays that fit, the latest more often."""
        fitting = [value for value in self.values if fits(value)]
        if not fitting:
            return None
        return self.pick(fitting[-6:] if self.chance(0.6) else fitting)

    def array(
        self, ranks: Collection[int] = range(9), types: Collection[str] = ALL, least: int = 1
    ) -> Value:
        """An array of such a rank and type, of at least `least` elements.

        Where none is at hand a new one is made.
        """
        found = self.find(
            lambda v: v.type in types and len(v.dimensions) in ranks and v.size >= least
        )
        if found is not None:
            return found
        shapes = [s for s in self.program.theme.shapes if len(s) in ranks and count(s) >= least]
        fitting = [kind for kind in self.program.theme.types if kind in types]
        dimensions = self.pick(shapes) if shapes else (4,) * max(1, min(ranks))
        return self.filled(self.pick(fitting or tuple(types)), dimensions)

    def like(self, value: Value) -> Value:
        """An array of the same shape, perhaps this one itself."""
        found = self.find(lambda other: other[1:] == value[1:] and other is not value)
        return value if found is None or self.chance(0.1) else found

    # -- writing ----------------------------------------------------------------------------------

    def write(self, stem: str, shape: str, rest: str, *of: Value) -> str:
        """A new instruction that is no array at hand; its name."""
        name = self.program.name(stem)
        self.lines.append(f"{name} = {shape} {rest}")
        self.used.update(value.name for value in of)
        return name

    def add(self, type_name: str, dimensions: Sequence[int], rest: str, *of: Value) -> Value:
        """A new array of what `rest` says, which reads `of`."""
        name = self.write("v", shape_text(type_name, dimensions), rest, *of)
        value = Value(name, type_name, tuple(dimensions))
        self.values.append(value)
        return value

    def scalar(self, type_name: str, value: int = 0) -> Value:
        """A constant."""
        text = f"({value}, 0)" if type_name in COMPLEX else str(value)
        name = self.write("c", f"{type_name}[]", f"constant({text})")
        return Value(name, type_name, ())

    def filled(self, type_name: str, dimensions: Sequence[int]) -> Value:
        """A new array that is no constant to the compiler, for the number in it is an argument."""
        number = self.find(lambda v: v.type == "s32" and not v.dimensions)
        if number is None:
            number = self.scalar("s32", 3)
        if type_name == "pred":
            rest = f"compare({number.name}, {number.name}), direction=LT"
            scalar = Value(self.write("s", "pred[]", rest, number), "pred", ())
        else:
            rest = f"convert({number.name})"
            scalar = Value(self.write("s", f"{type_name}[]", rest, number), type_name, ())
        return self.add(type_name, dimensions, f"broadcast({scalar.name}), dimensions={{}}", scalar)

    def elements(self, stem: str, name: str, values: Sequence[Value]) -> list[Value]:
        """The elements of a tuple, at hand from now on."""
        found = []
        for index, value in enumerate(values):
            rest = f"get-tuple-element({name}), index={index}"
            found.append(Value(self.write(stem, value.shape, rest), *value[1:]))
        self.values += found
        return found

    def unread(self) -> list[Value]:
        """The arrays that nothing reads yet."""
        return [value for value in self.values if value.name not in self.used]

    def close(self, stem: str, shape: str, root: str) -> str:
        """Write the computation with its root; its name."""
        name = self.program.name(stem)
        self.lines.append(f"ROOT {self.program.name('root')} = {shape} {root}")
        head = f"ENTRY {name}" if stem == "main" else name
        self.program.computations.append(f"{head} {{\n  " + "\n  ".join(self.lines) + "\n}")
        return name
