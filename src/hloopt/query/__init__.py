"""Selectors of instructions: `opcode=all-gather, type=f32, bytes>1MiB, in-loop`."""

from hloopt.query.selector import Selector, parse_selector

__all__ = ["Selector", "parse_selector"]
