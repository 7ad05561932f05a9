"""Programs on two arrays, compared with a reference."""

from __future__ import annotations

from hloopt.equivalence import Mismatch, Reference, RunSettings
from hloopt.ir.module import Module
from hloopt.text import parse_module


def entry(*lines: str, header: str = "HloModule m") -> Module:
    body = "".join(f"  {line}\n" for line in lines)
    return parse_module(f"{header}\n\nENTRY e {{\n{body}}}\n")


def compare(before: Module, after: Module, *, seeds: int = 3) -> Mismatch | None:
    return Reference(before, RunSettings(seeds)).compare(after)


P, Q = "p = f32[64]{0} parameter(0)", "q = f32[64]{0} parameter(1)"
SUM = entry(P, Q, "ROOT s = f32[64]{0} add(p, q)")
