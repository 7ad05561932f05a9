"""Random programs for one device: what a compiler fuses into kernels of several results."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

_SHAPES = ((256, 512), (256, 512), (1024, 256), (256, 256))
_UNARY = ("negate", "tanh", "exponential", "cosine")
_BINARY = ("add", "multiply", "maximum", "subtract")
_TYPES = ("f32", "f32", "f32", "bf16")
_MOST_RESULTS = 6


class _Value(NamedTuple):
    name: str
    dimensions: tuple[int, ...]
    type: str

    @property
    def shape(self) -> str:
        return f"{self.type}[{','.join(map(str, self.dimensions))}]"


def program(seed: int, number: int) -> str:
    """The program of a number, the same each time."""
    writer = _Writer(Random(f"{seed}:{number}"))
    for _ in range(writer.dice.randint(8, 30)):
        writer.step()
    return writer.text(number)


@dataclass(slots=True)
class _Writer:
    """The entry of a program, written line by line."""

    dice: Random
    lines: list[str] = field(default_factory=list)
    values: list[_Value] = field(default_factory=list)
    used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        for number in range(self.dice.randint(2, 5)):
            self.add(f"parameter({number})", self.dice.choice(_SHAPES), self.dice.choice(_TYPES))
        self.lines += ["zero_f32 = f32[] constant(0)", "zero_bf16 = bf16[] constant(0)"]
        self.lines += ["at = s32[] constant(3)"]

    def add(self, text: str, dimensions: tuple[int, ...], type_name: str, *of: _Value) -> None:
        value = _Value(f"v{len(self.values)}", dimensions, type_name)
        self.lines.append(f"{value.name} = {value.shape} {text}")
        self.values.append(value)
        self.used.update(operand.name for operand in of)

    def step(self) -> None:
        """Add an instruction that reads a value, mostly one of the last; sometimes none fits."""
        value = self.dice.choice([*self.values[-8:], *self.dice.sample(self.values, 2)])
        kinds = [self.unary, self.binary, self.binary, self.convert]
        if len(value.dimensions) == 2:
            kinds += [self.reduce, self.reduce, self.transpose, self.dot, self.flatten, self.update]
        elif len(value.dimensions) == 1:
            kinds += [self.broadcast]
        self.dice.choice(kinds)(value)

    def unary(self, value: _Value) -> None:
        self.add(f"{self.dice.choice(_UNARY)}({value.name})", *value[1:], value)

    def binary(self, value: _Value) -> None:
        other = self.dice.choice([other for other in self.values if other[1:] == value[1:]])
        opcode = self.dice.choice(_BINARY)
        self.add(f"{opcode}({value.name}, {other.name})", *value[1:], value, other)

    def convert(self, value: _Value) -> None:
        wanted = "bf16" if value.type == "f32" else "f32"
        self.add(f"convert({value.name})", value.dimensions, wanted, value)

    def reduce(self, value: _Value) -> None:
        gone = self.dice.randint(0, 1)
        name, kind = value.name, value.type
        text = f"reduce({name}, zero_{kind}), dimensions={{{gone}}}, to_apply=add_{kind}"
        self.add(text, (value.dimensions[1 - gone],), kind, value)

    def broadcast(self, value: _Value) -> None:
        (size,) = value.dimensions
        if size > 1024:
            return
        place = self.dice.randint(0, 1)
        other = self.dice.choice((256, 512))
        dimensions = (other, size) if place else (size, other)
        self.add(f"broadcast({value.name}), dimensions={{{place}}}", dimensions, value.type, value)

    def transpose(self, value: _Value) -> None:
        rows, columns = value.dimensions
        self.add(f"transpose({value.name}), dimensions={{1,0}}", (columns, rows), value.type, value)

    def dot(self, value: _Value) -> None:
        fitting = [
            other
            for other in self.values
            if other.type == value.type
            and len(other.dimensions) == 2
            and other.dimensions[0] == value.dimensions[1]
        ]
        if fitting:
            other = self.dice.choice(fitting)
            text = f"dot({value.name}, {other.name}), lhs_contracting_dims={{1}}, "
            dimensions = value.dimensions[0], other.dimensions[1]
            self.add(text + "rhs_contracting_dims={0}", dimensions, value.type, value, other)

    def flatten(self, value: _Value) -> None:
        rows, columns = value.dimensions
        self.add(f"reshape({value.name})", (rows * columns,), value.type, value)

    def update(self, value: _Value) -> None:
        """Write a part of a value into another place of it."""
        rows, columns = value.dimensions
        part = rows // 4, columns
        self.add(f"slice({value.name}), slice={{[0:{part[0]}], [0:{columns}]}}", part, value.type)
        new = self.values[-1]
        text = f"dynamic-update-slice({value.name}, {new.name}, at, at)"
        self.add(text, value.dimensions, value.type, value, new)

    def text(self, number: int) -> str:
        """The module, whose results are what nothing reads, the first few."""
        results = [v for v in self.values if v.name not in self.used][:_MOST_RESULTS]
        shapes = ", ".join(value.shape for value in results)
        names = ", ".join(value.name for value in results)
        reducers = "".join(
            f"add_{kind} {{ x = {kind}[] parameter(0) y = {kind}[] parameter(1) "
            f"ROOT z = {kind}[] add(x, y) }}\n"
            for kind in ("f32", "bf16")
        )
        body = "\n  ".join((*self.lines, f"ROOT root = ({shapes}) tuple({names})"))
        return (
            f"HloModule m{number}, replica_count=1, num_partitions=1\n{reducers}"
            f"ENTRY e {{\n  {body}\n}}\n"
        )
