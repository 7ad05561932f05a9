"""Elementwise programs at the edges of their types, of the kind that simplifiers miscompile.

Overflow at the smallest integer, division by 0, NaN and signed zeros, shifts by too much, chains of
conversions. Each is an expression for several element types, written as HLO and run on all pairs of
values at the edges.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from hloopt.interpreter.values import Array, dtype_of
from hloopt.ir.shapes.element_type import ELEMENT_TYPES

INTEGERS = ("s8", "u8", "s32", "u32", "s64")
FLOATS = ("f16", "bf16", "f32", "f64")
ORDINARY = (1.0, -1.0, 0.5, 1.75, -3.0, 7.0)
"""Floats on which no rule may go wrong: results of the programs are normal numbers, or 0."""
SPECIAL = (0.0, -0.0, float("inf"), -float("inf"), float("nan"))
EXTREMES = {
    "f16": (65504.0, 2.0**-14),
    "bf16": (2.0**127, 2.0**-126),
    "f32": (2.0**127, 2.0**-126),
    "f64": (2.0**1023, 2.0**-1022),
}
"""A large and a small normal number."""

OF_INTEGERS = (
    *("add(p, subtract(q, p))", "subtract(p, subtract(p, q))", "subtract(p, add(q, p))"),
    *("subtract(add(p, q), p)", "subtract(p, p)", "subtract(p, low)", "add(add(p, high), high)"),
    *("add(subtract(low, p), high)", "add(multiply(p, q), multiply(q, q))"),
    *("multiply(negate(p), negate(q))", "multiply(p, 0)", "multiply(multiply(p, high), 3)"),
    *("multiply(abs(p), abs(p))", "abs(abs(p))", "abs(multiply(p, p))", "negate(negate(p))"),
    *("divide(p, 1)", "divide(p, 4)", "divide(p, 64)", "divide(p, low)", "divide(p, high)"),
    *("divide(p, q)", "divide(divide(p, q), q)", "remainder(p, 1)", "remainder(p, 8)"),
    *("remainder(p, low)", "remainder(remainder(p, q), q)", "remainder(p, high)"),
    *("maximum(p, low)", "minimum(p, high)", "maximum(maximum(p, q), p)", "minimum(low, p)"),
    *("maximum(2, minimum(p, 1))", "minimum(2, maximum(p, 1))", "maximum(3, clamp(3, p, 1))"),
    *("clamp(q, clamp(q, p, 5), 5)", "power(p, 0)", "power(p, 2)", "power(p, 3)", "power(p, -1)"),
    *("compare_LT(p, 0)", "compare_GE(p, 0)", "compare_GT(0, p)", "compare_LE(0, p)"),
    *("compare_LT(abs(p), 0)", "compare_GE(multiply(p, p), 0)", "compare_LT(power(p, 2), 0)"),
    *("compare_LE(p, p)", "compare_GT(maximum(p, q), p)", "compare_GT(q, minimum(p, q))"),
    *("and_(p, 0)", "or_(p, 0)", "xor(p, p)", "xor(add(p, q), add(p, q))", "not_(not_(p))"),
    *("shift_left(p, q)", "shift_right_logical(p, q)", "shift_right_arithmetic(p, q)"),
    *("divide(shift_left(p, 3), 8)", "remainder(shift_right_logical(p, q), 4)"),
    *("multiply(convert_T(compare_LT(p, q)), p)", "select(not_(compare_LT(p, q)), p, q)"),
    "select(compare_LT(p, q), p, p)",
)
OF_FLOATS = (
    *("add(p, 0)", "add(p, -0.0)", "add(p, subtract(q, p))", "subtract(p, p)", "subtract(p, 0)"),
    *("add(add(p, 1.5), -1.5)", "subtract(p, -0.0)", "add(subtract(2, p), 1)", "multiply(p, 0)"),
    *("add(multiply(p, 4), multiply(q, 4))", "multiply(negate(p), negate(q))", "multiply(p, 1)"),
    *("multiply(abs(p), abs(p))", "multiply(multiply(p, 3), 2)", "multiply(sqrt(p), sqrt(p))"),
    *("multiply(sqrt(abs(p)), sqrt(abs(p)))", "multiply(rsqrt(abs(p)), rsqrt(abs(p)))"),
    *("multiply(exponential(p), exponential(q))", "multiply(convert_T(compare_LT(p, q)), q)"),
    *("multiply(multiply(p, 3), multiply(q, 5))", "divide(p, 1)", "divide(p, 0)", "divide(p, 3)"),
    *("divide(p, inf)", "divide(p, 4)", "divide(p, sqrt(q))", "divide(p, rsqrt(q))"),
    *("divide(p, exponential(q))", "divide(exponential(p), exponential(q))"),
    *("divide(divide(p, q), p)", "divide(p, divide(q, p))", "divide(p, power(q, 2))"),
    *("divide(divide(p, q), divide(q, p))", "divide(convert_T(compare_LT(p, q)), 3)"),
    *("remainder(p, 4)", "remainder(remainder(p, q), q)", "power(p, 0)", "power(p, 1)"),
    *("power(p, 2)", "power(p, 3)", "power(p, -1)", "power(p, 0.5)", "power(abs(p), 0.5)"),
    *("power(exponential(p), q)", "sqrt(multiply(p, p))", "rsqrt(power(p, -2))"),
    *("rsqrt(divide(1, p))", "rsqrt(divide(1, abs(p)))", "log(exponential(p))", "log(sqrt(p))"),
    *("log(rsqrt(p))", "log(power(p, q))", "log(power(abs(p), q))", "exponential(0)"),
    *("maximum(p, p)", "maximum(p, -inf)", "minimum(inf, p)", "maximum(maximum(p, q), q)"),
    *("minimum(q, minimum(p, q))", "maximum(1, minimum(p, 2))", "minimum(1, maximum(p, 2))"),
    *("maximum(1, clamp(1, p, 2))", "maximum(2, clamp(2, p, 1))", "maximum(nan, p)"),
    *("maximum(tanh(p), tanh(q))", "clamp(p, clamp(p, q, 3), 3)", "clamp(nan, p, 1)"),
    *("compare_LT(abs(p), 0)", "compare_GE(abs(p), 0)", "compare_GE(exponential(p), 0)"),
    *("compare_EQ(p, p)", "compare_NE(p, p)", "compare_GT(maximum(p, q), p)"),
    *("compare_GT(p, minimum(p, q))", "select(compare_EQ(p, q), p, q)"),
    *("select(compare_NE(p, p), p, 0)", "select(not_(compare_LT(p, q)), p, q)"),
    *("abs(abs(p))", "abs(multiply(p, p))", "abs(exponential(p))", "negate(negate(p))"),
    *("multiply(multiply(p, big), big)", "multiply(multiply(p, small), small)"),
    *("multiply(multiply(p, big), small)", "multiply(multiply(p, big), multiply(q, big))"),
    *("add(add(p, big), big)", "add(subtract(big, p), big)", "add(subtract(p, big), big)"),
    *("divide(p, big)", "divide(p, small)", "divide(divide(p, small), small)"),
    *("abs(maximum(p, 0))", "abs(select(compare_LT(p, q), abs(p), 1))"),
)
OF_TYPES = (
    *("convert_T(convert_U(p))", "convert_T(add(convert_U(p), convert_U(q)))"),
    "convert_T(divide(convert_U(p), convert_U(q)))",
    "convert_T(remainder(convert_U(p), convert_U(q)))",
)
_PAIRS = (
    *(("s8", "s32"), ("u8", "u32"), ("u8", "s32"), ("s8", "u32"), ("s32", "s8"), ("s32", "f32")),
    *(("s8", "f32"), ("u8", "f16"), ("s32", "f64"), ("s64", "f64"), ("u32", "f64"), ("s8", "bf16")),
    *(("f16", "f32"), ("bf16", "f32"), ("f32", "f64"), ("f32", "bf16"), ("f16", "bf16")),
    *(("bf16", "f16"), ("s32", "u32"), ("u32", "s32")),
)


class SpecialProgram(NamedTuple):
    """An expression for an element type, and for a second one that it converts to."""

    expression: str
    type_name: str
    other: str = ""

    @property
    def text(self) -> str:
        """The module: `p` and `q` hold each pair of `values_of` the type."""
        writer = _Writer(self.type_name, self.other, len(values_of(self.type_name)) ** 2)
        name, _ = writer.write(ast.parse(self.expression, mode="eval").body)
        lines = [f"{line}\n" for line in writer.lines[:-1]]
        assert writer.lines[-1].startswith(f"{name} =")
        return f"HloModule m\nENTRY e {{\n{''.join(lines)}ROOT {writer.lines[-1]}\n}}\n"

    def arguments(self) -> tuple[Array, Array]:
        """All pairs of values."""
        values = values_of(self.type_name)
        return values.repeat(len(values)), np.tile(values, len(values))

    @property
    def ordinary(self) -> Array:
        """For each pair, whether both are ordinary."""
        count = len(values_of(self.type_name))
        single = np.arange(count) < len(ORDINARY)
        return np.asarray(single.repeat(count) & np.tile(single, count))


def special_programs() -> Iterator[SpecialProgram]:
    """All of them, without those that have no meaning for a type."""
    for expression, kind in product(OF_INTEGERS, INTEGERS):
        if kind.startswith("s") or not any(word in expression for word in ("abs", "negate", "-1")):
            yield SpecialProgram(expression, kind)
    for expression, kind in product(OF_FLOATS, FLOATS):
        yield SpecialProgram(expression, kind)
    for expression, (kind, other) in product(OF_TYPES, _PAIRS):
        yield SpecialProgram(expression, kind, other)


def values_of(type_name: str) -> Array:
    """Values at the edges of a type; for floats the ordinary ones first."""
    kind = ELEMENT_TYPES[type_name]
    dtype = dtype_of(kind)
    if kind.is_integral:
        low, high = _range(type_name)
        middle = (0, 1, 2, 3, 5, 7, 8, 31, 33, 64, 100)
        negative = (-1, -2, -3, -8, -33) if low else ()
        return np.asarray([*middle, *negative, low, low + 1, high, high - 1], dtype)
    extremes = EXTREMES[type_name]
    return np.asarray([*ORDINARY, *SPECIAL, *extremes, -extremes[0]]).astype(dtype)


def _range(type_name: str) -> tuple[int, int]:
    bits = ELEMENT_TYPES[type_name].bits
    if type_name.startswith("s"):
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


class _Writer:
    """Writes an expression as instructions, each operand once for each time that it occurs."""

    def __init__(self, type_name: str, other: str, size: int) -> None:
        self._types = {"T": type_name, "U": other}
        self._size = size
        self.lines: list[str] = []
        for number, name in enumerate("pq"):
            self.lines.append(f"{name} = {type_name}[{size}] parameter({number})")

    def write(self, node: ast.expr) -> tuple[str, str]:
        """The name and the element type of a part."""
        if isinstance(node, ast.Name) and node.id in "pq":
            return node.id, self._types["T"]
        if not isinstance(node, ast.Call):
            return self._constant(ast.unparse(node)), self._types["T"]
        assert isinstance(node.func, ast.Name)
        opcode, _, detail = node.func.id.partition("_")
        if opcode == "shift":
            opcode, detail = node.func.id.replace("_", "-"), ""
        operands = [self.write(part) for part in node.args]
        result = operands[-1][1]
        if opcode == "convert":
            result, detail = self._types[detail], ""
        if opcode == "compare":
            result, detail = "pred", f", direction={detail}"
        names = ", ".join(name for name, _ in operands)
        return self._line(f"{result}[{self._size}] {opcode}({names}){detail}"), result

    def _constant(self, text: str) -> str:
        kind = self._types["T"]
        known: dict[str, str] = {}
        if ELEMENT_TYPES[kind].is_integral:
            low, high = _range(kind)
            known = {"low": str(low), "high": str(high)}
        else:
            known = dict(zip(("big", "small"), map(repr, EXTREMES[kind]), strict=True))
        scalar = self._line(f"{kind}[] constant({known.get(text, text)})")
        return self._line(f"{kind}[{self._size}] broadcast({scalar}), dimensions={{}}")

    def _line(self, text: str) -> str:
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        return name
