"""Walks along programs, as rematerialization makes them."""

from __future__ import annotations

from typing import Any

from hloopt.pass_framework.base import PassContext
from hloopt.passes.rematerialization.options import RematerializationOptions
from hloopt.passes.rematerialization.state import State
from hloopt.passes.rematerialization.walk import Walk
from hloopt.text import parse_module


def walk_of(text: str, options: dict[str, Any], *, at_peak: bool = True) -> Walk:
    """The walk along the entry of a program, before its beginning."""
    module = parse_module(text)
    settings = RematerializationOptions(memory_limit_bytes=0, **options)
    state = State(module, settings, PassContext("rematerialization"))
    state.find_peaks(())
    return Walk(state, module.entry, 0, cost_limit=1 << 30, at_peak=at_peak)
