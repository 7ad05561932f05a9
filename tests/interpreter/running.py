"""Runs modules in tests."""

from __future__ import annotations

from hloopt.interpreter.machine import devices_of, run_module
from hloopt.interpreter.values import Value
from hloopt.text import parse_module


def run(text: str, *arguments: Value) -> Value:
    """What a module makes of `arguments` on a single device."""
    return run_module(parse_module(text), [arguments], devices=devices_of(1, 1))[0]
