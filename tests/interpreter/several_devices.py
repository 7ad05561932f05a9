"""Runs modules on several devices in tests."""

from __future__ import annotations

from collections.abc import Sequence

from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Value
from hloopt.text import parse_module


def run_on(
    replicas: int, partitions: int, text: str, arguments: Sequence[Sequence[Value]]
) -> list[Value]:
    """What each device makes of its arguments, by number."""
    return run_module(parse_module(text), arguments, devices=devices_of(replicas, partitions))


def entry(*lines: str, reduction: str = "add", element: str = "f32") -> str:
    """A module of an entry with these lines, and of a computation `sum` on scalars."""
    body = "\n".join(f"  {line}" for line in lines)
    scalar = f"{element}[]"
    return f"""HloModule m

sum {{
  left = {scalar} parameter(0)
  right = {scalar} parameter(1)
  ROOT total = {scalar} {reduction}(left, right)
}}

ENTRY e {{
{body}
}}
"""
