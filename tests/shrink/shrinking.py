"""Modules for tests of shrinking, and what became of them."""

from __future__ import annotations

from textwrap import dedent

from hloopt.ir import Module
from hloopt.shrink import plan_shrink
from hloopt.text import parse_module

SUM = """
add { left = f32[] parameter(0)
  right = f32[] parameter(1)
  ROOT sum = f32[] add(left, right) }
"""


def module_of(body: str, computations: str = SUM, header: str = "") -> Module:
    return parse_module(f"HloModule m{header}\n{computations}\nENTRY e {{\n{dedent(body)}\n}}\n")


def shrunk(module: Module, budget: int = 0) -> Module:
    return plan_shrink([module], budget).apply(module)


def sizes(module: Module, name: str) -> tuple[int, ...]:
    """The dimensions of an instruction, or of the first array in its tuple."""
    return next(i for i in module.instructions() if i.name == name).shape.leaves()[0].dimensions


def attribute(module: Module, name: str, key: str) -> str:
    return next(i for i in module.instructions() if i.name == name).attributes[key]
