"""Modules of an instruction and its parameters."""

from __future__ import annotations

from hloopt.ir import Module
from hloopt.text import parse_module

APPLIED = """
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
less { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = pred[] compare(a, b), direction=LT }
soft { a = f32[] parameter(0)  b = f32[] parameter(1)  e = f32[] exponential(a)
  ROOT c = f32[] add(e, b) }
"""


def entry_of(parameters: str, instruction: str) -> Module:
    """A module that runs one instruction on parameters `a`, `b`, … of these shapes."""
    shapes = parameters.split(";") if parameters else []
    lines = [f"{name} = {shape} parameter({i})" for i, (name, shape) in enumerate(named(shapes))]
    return parse_module(f"{APPLIED}ENTRY e {{ {'  '.join(lines)}  ROOT r = {instruction} }}")


def named(shapes: list[str]) -> list[tuple[str, str]]:
    return list(zip("abcdefgh", shapes, strict=False))
