"""A program in the making, of which all that is computed is a result."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from random import Random
from typing import NamedTuple, TypeVar

_T = TypeVar("_T")


class Value(NamedTuple):
    """An instruction whose result is one array."""

    name: str
    type: str
    sizes: tuple[int, ...]
    order: tuple[int, ...]
    """Dimensions from minor to major."""

    @property
    def shape(self) -> str:
        layout = listed(self.order) if self.sizes else ""
        if self.type in ("s4", "u4"):  # as XLA's first pass has it
            layout = f"{listed(self.order)[:-1]}:E(4)}}"
        return f"{self.type}[{listed(self.sizes)[1:-1]}]{layout}"


class Writer:
    """The main computation of a program."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.computations: list[str] = []
        """The called computations, as text."""
        self._parameters: list[Value] = []
        self._lines: list[str] = []
        self._unused: dict[str, Value] = {}
        self._channels = 0

    # -- chance -----------------------------------------------------------------------------------

    def chance(self, share: float) -> bool:
        return self.dice.random() < share

    def pick(self, choices: Sequence[_T]) -> _T:
        return self.dice.choice(choices)

    def shuffled(self, items: Sequence[_T]) -> list[_T]:
        return self.dice.sample(items, len(items))

    def order(self, rank: int, share: float) -> list[int] | None:
        """A layout by chance, for a share of the arrays; None for the default one."""
        return self.shuffled(range(rank)) if self.chance(share) else None

    # -- instructions -----------------------------------------------------------------------------

    def add(
        self,
        type_name: str,
        sizes: Sequence[int],
        opcode: str,
        operands: Sequence[Value] = (),
        *attributes: str,
        inside: str = "",
        order: Sequence[int] | None = None,
    ) -> Value:
        """A new instruction; the text `inside` its parentheses is that of its operands by default.

        Its layout is the default one unless an `order` of dimensions is given.
        """
        minor_to_major = tuple(range(len(sizes)))[::-1] if order is None else tuple(order)
        value = Value(f"v{len(self._lines)}", type_name, tuple(sizes), minor_to_major)
        inside = inside or ", ".join(operand.name for operand in operands)
        text = ", ".join((f"{opcode}({inside})", *filter(None, attributes)))
        self._lines.append(f"{value.name} = {value.shape} {text}")
        for operand in operands:
            self._unused.pop(operand.name, None)
        self._unused[value.name] = value
        return value

    def several(
        self,
        results: Sequence[Value],
        opcode: str,
        operands: Sequence[Value] = (),
        *attributes: str,
        inside: str = "",
        read: Sequence[int] | None = None,
    ) -> list[Value]:
        """The elements of a new instruction that gives a tuple of such `results`; those of the
        numbers `read`, by default all."""
        name = f"v{len(self._lines)}"
        inside = inside or ", ".join(operand.name for operand in operands)
        shape = f"({', '.join(result.shape for result in results)})"
        text = ", ".join((f"{opcode}({inside})", *filter(None, attributes)))
        self._lines.append(f"{name} = {shape} {text}")
        for operand in operands:
            self._unused.pop(operand.name, None)
        return [
            self.add(
                results[n].type,
                results[n].sizes,
                "get-tuple-element",
                (),
                f"index={n}",
                inside=name,
                order=results[n].order,
            )
            for n in (range(len(results)) if read is None else read)
        ]

    def tuple(self, values: Sequence[Value]) -> Value:
        """A new tuple, which only an instruction that takes tuples may read."""
        name = f"v{len(self._lines)}"
        shape = f"({', '.join(value.shape for value in values)})"
        inside = ", ".join(value.name for value in values)
        self._lines.append(f"{name} = {shape} tuple({inside})")
        for value in values:
            self._unused.pop(value.name, None)
        return Value(name, "", (), ())

    def binary(self, opcode: str, type_name: str, *attributes: str, result: str = "") -> str:
        """The name of a new computation of two scalars; `result`: its type, theirs by default."""
        name = f"{opcode}.{len(self.computations)}"
        shape, text = f"{type_name}[]", ", ".join((f"{opcode}(a, b)", *attributes))
        lines = (
            f"a = {shape} parameter(0)",
            f"b = {shape} parameter(1)",
            f"ROOT c = {result or type_name}[] {text}",
        )
        self.computations.append(_computation(name, lines))
        return name

    def parameter(
        self,
        type_name: str,
        sizes: Sequence[int],
        *attributes: str,
        order: Sequence[int] | None = None,
    ) -> Value:
        """A new parameter."""
        inside = str(len(self._parameters))
        made = self.add(type_name, sizes, "parameter", (), *attributes, inside=inside, order=order)
        self._parameters.append(made)
        return made

    def constant(self, type_name: str, value: float) -> Value:
        """A new scalar constant."""
        return self.add(type_name, (), "constant", inside=str(value))

    def broadcast(self, scalar: Value, sizes: Sequence[int]) -> Value:
        """An array filled with a scalar."""
        return self.add(scalar.type, sizes, "broadcast", [scalar], "dimensions={}")

    def channel(self) -> str:
        """The attribute of a new channel."""
        self._channels += 1
        return f"channel_id={self._channels}"

    def control(self, value: Value) -> str:
        """The attribute of what runs after a value."""
        return f"control-predecessors={{{value.name}}}"

    def finish(self, name: str, results: Sequence[Value], *, is_tuple: bool) -> str:
        """A computation of the name with what was written, of which these are the results."""
        inside = ", ".join(result.name for result in results)
        if is_tuple:
            shape = ", ".join(result.shape for result in results)
            return _computation(name, [*self._lines, f"ROOT out = ({shape}) tuple({inside})"])
        begin = f"{inside} = "
        lines = [f"ROOT {line}" if line.startswith(begin) else line for line in self._lines]
        return _computation(name, lines)

    # -- the module -------------------------------------------------------------------------------

    def text(self, header: str = "") -> str:
        """The module; now and then another computation calls what was written."""
        results = list(self._unused.values())
        shape = f"({', '.join(value.shape for value in results)})"
        lines = [*self._lines]
        lines.append(f"ROOT out = {shape} tuple({', '.join(value.name for value in results)})")
        parts = [*self.computations]
        if self.chance(0.15):
            parts.append(_computation("called", lines))
            lines = [f"p{n} = {p.shape} parameter({n})" for n, p in enumerate(self._parameters)]
            names = ", ".join(f"p{n}" for n in range(len(self._parameters)))
            lines.append(f"ROOT result = {shape} call({names}), to_apply=called")
        parts.append(_computation("ENTRY main", lines))
        return "\n\n".join((f"HloModule m{header}", *parts)) + "\n"


def _computation(name: str, lines: Sequence[str]) -> str:
    return "\n  ".join((f"{name} {{", *lines)) + "\n}"


def listed(numbers: Iterable[int]) -> str:
    """Numbers as the value of an attribute."""
    return f"{{{','.join(map(str, numbers))}}}"
